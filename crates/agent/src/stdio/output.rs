//! The thread that writes standard output, and what waits for it.
//!
//! Data of one session wait for room; a few words about sessions never do, and go first. A new
//! session throws away what waits of the old one. What has begun to be written is written to its
//! end.

use std::collections::VecDeque;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use glovebox_protocol::record::{Kind, Nonce, Tag, encode};
use tokio::sync::Notify;

/// Data that may wait, in bytes.
const ROOM: usize = 256 * 1024;

/// Words that may wait. A gateway that says hello again and again without reading gets no more
/// answers than that.
const WORDS: usize = 64;

/// The standard output of the agent.
pub(super) struct Output {
    waiting: Mutex<Waiting>,
    more: Condvar,
    /// Told when there is room, when a session is over, and when everything is written.
    changed: Notify,
}

#[derive(Default)]
struct Waiting {
    session: Option<Tag>,
    words: VecDeque<Vec<u8>>,
    data: VecDeque<Vec<u8>>,
    data_bytes: usize,
    /// Whether a record is being written.
    writing: bool,
    broken: bool,
}

impl Output {
    /// Starts the thread.
    pub(super) fn start(stdout: OwnedFd) -> std::io::Result<Arc<Self>> {
        let output = Arc::new(Self {
            waiting: Mutex::default(),
            more: Condvar::new(),
            changed: Notify::new(),
        });
        let writer = Arc::clone(&output);
        std::thread::Builder::new()
            .name("output".into())
            .spawn(move || writer.write(stdout.into()))?;
        Ok(output)
    }

    /// Begins a session: what waits of an earlier one is thrown away, and the hello acknowledged.
    pub(super) fn begin(&self, nonce: Nonce) {
        self.with(|waiting| {
            waiting.session = Some(nonce.tag());
            waiting.data.clear();
            waiting.data_bytes = 0;
        });
        self.say(nonce.tag(), Kind::Ack, &nonce.0);
        self.changed.notify_waiters();
    }

    /// Says something short about a session.
    pub(super) fn say(&self, tag: Tag, kind: Kind, payload: &[u8]) {
        let Ok(record) = encode(tag, kind, payload) else {
            return;
        };
        self.with(|waiting| {
            if waiting.words.len() < WORDS {
                waiting.words.push_back(record);
            }
        });
        self.more.notify_one();
    }

    /// Says something and waits until it is written.
    pub(super) async fn last_word(&self, tag: Tag, kind: Kind, payload: &[u8]) {
        let end = payload.len().min(glovebox_protocol::record::MAX_PAYLOAD);
        self.say(tag, kind, &payload[..end]);
        self.until(|waiting| waiting.broken || (!waiting.writing && waiting.words.is_empty()))
            .await;
    }

    /// Sends data of a session as soon as there is room. Says whether the session still is.
    pub(super) async fn data(&self, tag: Tag, payload: &[u8]) -> bool {
        let Ok(record) = encode(tag, Kind::Data, payload) else {
            return false;
        };
        self.until(|waiting| {
            waiting.broken || waiting.session != Some(tag) || waiting.data_bytes < ROOM
        })
        .await;
        let is_current = self.with(|waiting| {
            let is_current = !waiting.broken && waiting.session == Some(tag);
            if is_current {
                waiting.data_bytes += record.len();
                waiting.data.push_back(record);
            }
            is_current
        });
        self.more.notify_one();
        is_current
    }

    async fn until(&self, holds: impl Fn(&Waiting) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.with(|waiting| holds(waiting)) {
                return;
            }
            changed.await;
        }
    }

    fn write(&self, mut stdout: std::fs::File) {
        loop {
            let record = self.next();
            let written = stdout.write_all(&record).is_ok();
            self.with(|waiting| {
                waiting.writing = false;
                waiting.broken = !written;
            });
            self.changed.notify_waiters();
            if !written {
                return;
            }
        }
    }

    fn next(&self) -> Vec<u8> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let next = waiting.words.pop_front().or_else(|| {
                let record = waiting.data.pop_front()?;
                waiting.data_bytes -= record.len();
                Some(record)
            });
            if let Some(record) = next {
                waiting.writing = true;
                return record;
            }
            waiting = self
                .more
                .wait(waiting)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing panics while it holds the lock; if something did, the data are still whole.
    fn with<T>(&self, work: impl FnOnce(&mut Waiting) -> T) -> T {
        work(&mut self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
