//! Who is connected. There is room for so many; when it is full, whoever has shown no credential
//! and waits longest has to go, so that nobody without one can keep the others out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::state::lock;

/// What is known of one connection.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    peer: Option<SocketAddr>,
    is_authenticated: AtomicBool,
    requests: AtomicU32,
    shown: Notify,
}

/// A request that is being answered, as long as this lives.
pub(crate) struct Busy<'a>(&'a Standing);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Standing {
    pub(crate) fn new(peer: Option<SocketAddr>) -> Self {
        Self {
            peer,
            ..Self::default()
        }
    }

    pub(crate) const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// Somebody with a credential is on it.
    pub(crate) fn authenticated(&self) {
        if !self.is_authenticated.swap(true, Ordering::Relaxed) {
            self.shown.notify_one();
        }
    }

    /// Returns when somebody has shown a credential.
    pub(crate) async fn until_authenticated(&self) {
        self.shown.notified().await;
    }

    /// A request begins.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// How much there is against closing it: 0 nothing, 2 nearly all.
    fn rank(&self) -> u8 {
        let is_busy = self.requests.load(Ordering::Relaxed) > 0;
        match (self.is_authenticated.load(Ordering::Relaxed), is_busy) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        }
    }
}

/// All connections of a gateway, the oldest first.
pub(crate) struct Connections {
    room: usize,
    all: Mutex<All>,
}

#[derive(Default)]
struct All {
    /// How many there were so far.
    next: u64,
    /// By their numbers, with the tasks that serve them.
    by_number: BTreeMap<u64, (Arc<Standing>, AbortHandle)>,
}

impl Connections {
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            all: Mutex::default(),
        }
    }

    /// Takes a connection in, with the task that serves it, and makes room if need be. Where all
    /// are at work, it is the new one that has to go.
    pub(crate) fn admit(&self, standing: Arc<Standing>, task: AbortHandle) {
        let mut all = lock(&self.all);
        let All {
            next,
            by_number: connections,
        } = &mut *all;
        if connections.len() >= self.room {
            connections.retain(|_, (_, task)| !task.is_finished());
        }
        if connections.len() >= self.room {
            let victim = connections
                .iter()
                .map(|(number, (standing, _))| (standing.rank(), *number))
                .min();
            match victim {
                Some((0 | 1, number)) => {
                    if let Some((_, victim)) = connections.remove(&number) {
                        victim.abort();
                    }
                }
                _ => {
                    task.abort();
                    return;
                }
            }
        }
        *next += 1;
        connections.insert(*next, (standing, task));
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        let connections = &mut lock(&self.all).by_number;
        connections.retain(|_, (_, task)| !task.is_finished());
        connections.len()
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        let all = lock(&self.all);
        all.by_number.values().for_each(|(_, task)| task.abort());
    }
}
