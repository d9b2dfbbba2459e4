//! How many streams of events there may be: each holds a connection and looks for news again and again,
//! for as long as its caller likes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_protocol::ids::{UserId, WorkspaceId};

use crate::config::StreamLimits;

/// Whose streams are counted together: all browsers of a person, all programs with keys of a workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Who {
    User(UserId),
    Programs(WorkspaceId),
}

/// The streams of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams {
    open: Arc<Mutex<HashMap<Who, u32>>>,
}

/// A stream that counts for as long as this lives.
#[derive(Debug)]
pub(crate) struct OpenStream {
    who: Who,
    all: Streams,
}

/// There are as many as there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TooManyStreams {
    /// Of one caller.
    #[error(
        "you have {0} streams of events open, as many as one caller may have (max_caller_streams)"
    )]
    Own(u32),
    /// Of all callers together.
    #[error("{0} streams of events are open, as many as this server gives (max_streams)")]
    InAll(u32),
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, HashMap<Who, u32>> {
        // Numbers have no state in which they could be left half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more stream, if there may be one.
    pub(crate) fn open(
        &self,
        who: Who,
        limits: StreamLimits,
    ) -> Result<OpenStream, TooManyStreams> {
        let mut open = self.lock();
        let own = open.get(&who).copied().unwrap_or(0);
        if own >= limits.per_caller {
            return Err(TooManyStreams::Own(limits.per_caller));
        }
        if open.values().sum::<u32>() >= limits.in_all {
            return Err(TooManyStreams::InAll(limits.in_all));
        }
        open.insert(who, own + 1);
        Ok(OpenStream {
            who,
            all: self.clone(),
        })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = self.all.lock();
        if let Some(count) = open.get_mut(&self.who) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.who);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_count_for_their_caller_and_for_all_until_they_close() {
        let streams = Streams::default();
        let limits = StreamLimits {
            per_caller: 2,
            in_all: 3,
        };
        let [ada, bob] = [UserId::new(), UserId::new()].map(Who::User);
        let one = streams.open(ada, limits).unwrap();
        let _two = streams.open(ada, limits).unwrap();
        let refused = streams.open(ada, limits).unwrap_err();
        assert_eq!(refused, TooManyStreams::Own(2));
        let _three = streams.open(bob, limits).unwrap();
        let refused = streams.open(bob, limits).unwrap_err();
        assert_eq!(refused, TooManyStreams::InAll(3));
        drop(one);
        let four = streams.open(bob, limits).unwrap();
        drop(four);
        assert_eq!(streams.lock()[&bob], 1);
        let _five = streams.open(ada, limits).unwrap();
    }
}
