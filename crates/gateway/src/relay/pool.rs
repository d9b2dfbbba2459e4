//! Connections to one agent, kept and used again.

use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::channel::Channel;
use crate::state::lock;

/// Connections that are kept for later at most.
const MAX_IDLE: usize = 8;

/// How long one is kept. An agent closes those that have been silent for two minutes.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);

/// The idle connections to one agent.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Idle>);

#[derive(Default)]
struct Idle {
    /// Those that are kept, and since when; the latest last.
    channels: Vec<(Channel, Instant)>,
    is_closed: bool,
}

impl Pool {
    /// The connection that was used last, if it can be used again.
    pub(crate) fn take(&self) -> Option<Channel> {
        let mut idle = lock(&self.0);
        let (channel, since) = idle.channels.pop()?;
        if since.elapsed() < MAX_IDLE_TIME {
            return Some(channel);
        }
        // The others have been kept for longer still.
        idle.channels.clear();
        None
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&self, channel: Channel) {
        let mut idle = lock(&self.0);
        if channel.is_usable() && !idle.is_closed && idle.channels.len() < MAX_IDLE {
            idle.channels.push((channel, Instant::now()));
        }
    }

    /// Closes those that are kept, and keeps none any more.
    pub(crate) fn close(&self) {
        let mut idle = lock(&self.0);
        idle.is_closed = true;
        idle.channels.clear();
    }

    /// Closes those that have been kept for long.
    pub(crate) fn close_old(&self) {
        let mut idle = lock(&self.0);
        idle.channels
            .retain(|(_, since)| since.elapsed() < MAX_IDLE_TIME);
    }
}
