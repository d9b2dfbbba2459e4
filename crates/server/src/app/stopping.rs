//! The end of a server that is asked to stop: code that runs gets a moment to end by itself, then it
//! is ended and whoever waits for it is told why; so are replies of chat.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::App;

/// How long code and replies may go on by themselves.
const BY_ITSELF: Duration = Duration::from_secs(3);

/// How long it may take after that until all of them have ended and are told of.
const ENDING: Duration = Duration::from_secs(15);

/// How far a server is on its way to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It is not: it does what it is asked.
    Serving,
    /// Nothing new begins.
    LastCall,
    /// What runs is ended.
    Ending,
    /// All that there is to tell is told.
    Over,
}

/// Whether a server stops, and what is still at work. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Stopping {
    phase: Arc<watch::Sender<Phase>>,
    at_work: Arc<watch::Sender<usize>>,
}

/// Something that has to end before the server does, as long as this lives.
#[derive(Debug)]
pub(crate) struct AtWork(Arc<watch::Sender<usize>>);

impl Default for Stopping {
    fn default() -> Self {
        Self {
            phase: Arc::new(watch::Sender::new(Phase::Serving)),
            at_work: Arc::default(),
        }
    }
}

impl Stopping {
    /// Begins something, unless the server is about to stop.
    pub(crate) fn begin(&self) -> Option<AtWork> {
        // Counted before the look: of the two, one sees the other.
        self.at_work.send_modify(|count| *count += 1);
        let at_work = AtWork(Arc::clone(&self.at_work));
        (*self.phase.borrow() == Phase::Serving).then_some(at_work)
    }

    /// Whether what runs is to be ended.
    pub(crate) fn is_ending(&self) -> bool {
        *self.phase.borrow() >= Phase::Ending
    }

    /// Returns when what runs is to be ended.
    pub(crate) async fn until_ending(&self) {
        self.until(Phase::Ending).await;
    }

    /// Returns when nothing will be told any more: streams that have no end of their own end.
    pub(crate) async fn until_over(&self) {
        self.until(Phase::Over).await;
    }

    async fn until(&self, wanted: Phase) {
        let mut phase = self.phase.subscribe();
        // The sender lives as long as this does.
        let _ = phase.wait_for(|phase| *phase >= wanted).await;
    }

    async fn until_done(&self, deadline: Instant) -> bool {
        let mut at_work = self.at_work.subscribe();
        let done = timeout_at(deadline, at_work.wait_for(|count| *count == 0)).await;
        done.is_ok()
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl App {
    /// Ends what this server drives, and returns when it has ended and its end is kept.
    pub(crate) async fn wind_up(&self) {
        let stopping = self.stopping();
        stopping.phase.send_replace(Phase::LastCall);
        if !stopping.until_done(Instant::now() + BY_ITSELF).await {
            stopping.phase.send_replace(Phase::Ending);
            if !stopping.until_done(Instant::now() + ENDING).await {
                let left = *stopping.at_work.borrow();
                tracing::warn!(left, "not all that ran has ended before the server");
            }
        }
        stopping.phase.send_replace(Phase::Over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_begins_once_it_stops_and_the_end_waits_for_what_is_at_work() {
        let stopping = Stopping::default();
        let one = stopping.begin().unwrap();
        stopping.phase.send_replace(Phase::LastCall);
        assert!(stopping.begin().is_none());
        assert!(!stopping.until_done(Instant::now()).await);
        let asked = stopping.clone();
        let ending = tokio::spawn(async move {
            asked.until_ending().await;
            drop(one);
        });
        stopping.phase.send_replace(Phase::Ending);
        assert!(stopping.until_done(Instant::now() + ENDING).await);
        ending.await.unwrap();
    }
}
