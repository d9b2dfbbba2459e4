//! What this process knows of threads beyond the database: who waits for their events, and which
//! replies it drives.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_protocol::ids::{MessageId, ThreadId};
use tokio::sync::watch;

/// Threads that are followed here, and replies that are driven here. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    threads: HashMap<ThreadId, watch::Sender<u64>>,
    replies: HashMap<MessageId, watch::Sender<bool>>,
}

/// Somebody who waits for events of a thread.
#[derive(Debug)]
pub(crate) struct Following {
    thread: ThreadId,
    all: Live,
    news: watch::Receiver<u64>,
}

/// Keeps a reply known as driven here for as long as it lives.
#[derive(Debug)]
pub(crate) struct Driven {
    reply: MessageId,
    all: Live,
    stop: watch::Receiver<bool>,
}

impl Live {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Maps of senders have no state in which they could be left half changed.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for events of a thread from now on.
    pub(crate) fn follow(&self, thread: ThreadId) -> Following {
        let news = self
            .lock()
            .threads
            .entry(thread)
            .or_insert_with(|| watch::Sender::new(0))
            .subscribe();
        Following {
            thread,
            all: self.clone(),
            news,
        }
    }

    /// Events of a thread up to this number are stored.
    pub(crate) fn told(&self, thread: ThreadId, seq: u64) {
        if let Some(sender) = self.lock().threads.get(&thread) {
            sender.send_if_modified(|known| {
                let is_news = *known < seq;
                *known = seq.max(*known);
                is_news
            });
        }
    }

    /// From now on this process drives a reply.
    pub(crate) fn drive(&self, reply: MessageId) -> Driven {
        let mut inner = self.lock();
        let sender = watch::Sender::new(false);
        let stop = sender.subscribe();
        inner.replies.insert(reply, sender);
        drop(inner);
        Driven {
            reply,
            all: self.clone(),
            stop,
        }
    }

    /// Whether this process drives a reply.
    pub(crate) fn is_driven(&self, reply: MessageId) -> bool {
        self.lock().replies.contains_key(&reply)
    }

    /// Asks for the end of a reply, where this process drives it.
    pub(crate) fn stop(&self, reply: MessageId) {
        if let Some(sender) = self.lock().replies.get(&reply) {
            sender.send_replace(true);
        }
    }
}

impl Following {
    /// Waits until an event after this number is stored here.
    pub(crate) async fn after(&mut self, seq: u64) {
        // The sender is kept for as long as anybody follows.
        let _ = self.news.wait_for(|stored| *stored > seq).await;
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let mut inner = self.all.lock();
        let is_last = inner
            .threads
            .get(&self.thread)
            .is_some_and(|sender| sender.receiver_count() <= 1);
        if is_last {
            inner.threads.remove(&self.thread);
        }
    }
}

impl Driven {
    /// Whether somebody has asked for the end, as it changes.
    pub(crate) fn stop(&self) -> watch::Receiver<bool> {
        self.stop.clone()
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.all.lock().replies.remove(&self.reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nothing_is_kept_of_threads_that_nobody_follows_any_more() {
        let (live, thread) = (Live::default(), ThreadId::new());
        let (mut one, other) = (live.follow(thread), live.follow(thread));
        live.told(thread, 3);
        one.after(2).await;
        drop(one);
        assert_eq!(live.lock().threads.len(), 1);
        drop(other);
        assert!(live.lock().threads.is_empty());
        live.told(thread, 4);
        assert!(live.lock().threads.is_empty());
    }

    #[tokio::test]
    async fn a_reply_that_is_driven_here_can_be_stopped_here() {
        let (live, reply) = (Live::default(), MessageId::new());
        let driven = live.drive(reply);
        assert!(live.is_driven(reply));
        let mut stop = driven.stop();
        live.stop(MessageId::new());
        assert!(!*stop.borrow());
        live.stop(reply);
        stop.wait_for(|asked| *asked).await.unwrap();
        drop(driven);
        assert!(!live.is_driven(reply) && live.lock().replies.is_empty());
    }
}
