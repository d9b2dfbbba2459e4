//! What people are told of what a model says: without thoughts and paths, and not letter by letter.

use std::time::Duration;

use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::StoreError;
use tokio::time::Instant;

use super::paths::WithoutPaths;
use super::thoughts::WithoutThoughts;
use crate::chat::turn::Turn;

/// How much time lies between two pieces of text at least. The first is told at once: it is what
/// somebody waits for.
const GATHERED: Duration = Duration::from_millis(50);

/// How much is gathered at most, in bytes.
const MAX_GATHERED: usize = 8 * 1024;

/// Tells the text of one reply.
pub(super) struct Voice<'a> {
    turn: &'a Turn,
    thoughts: WithoutThoughts,
    paths: WithoutPaths,
    /// What is to be told next, and when.
    gathered: String,
    due: Option<Instant>,
    /// When something was told last.
    told_at: Option<Instant>,
    /// All that was told.
    said: String,
    /// Whether something is to stand between what was told and what comes.
    is_new_part: bool,
    /// Whether the answer that is being heard has said something.
    has_spoken: bool,
}

impl<'a> Voice<'a> {
    pub(super) fn new(turn: &'a Turn) -> Self {
        Self {
            turn,
            thoughts: WithoutThoughts::default(),
            paths: WithoutPaths::default(),
            gathered: String::new(),
            due: None,
            told_at: None,
            said: String::new(),
            is_new_part: false,
            has_spoken: false,
        }
    }

    /// Another answer of the model begins.
    pub(super) fn begin(&mut self) {
        self.thoughts = WithoutThoughts::default();
        self.is_new_part = !self.said.is_empty() || !self.gathered.is_empty();
        self.has_spoken = false;
    }

    /// Whether the answer that is being heard has said something that people can read.
    pub(super) fn has_spoken(&self) -> bool {
        self.has_spoken
    }

    /// All that was told.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// When something is to be told; nothing where there is nothing.
    pub(super) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Takes what the model says next.
    pub(super) async fn push(&mut self, text: &str) -> Result<(), StoreError> {
        let text = self.thoughts.push(text);
        self.gather(&text);
        if self.gathered.len() > MAX_GATHERED {
            self.flush().await?;
        }
        Ok(())
    }

    fn gather(&mut self, text: &str) {
        let text = if self.has_spoken {
            text
        } else {
            text.trim_start()
        };
        if text.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_new_part) {
            let rest = self.paths.end();
            self.gathered.push_str(&rest);
            self.gathered.push_str("\n\n");
        }
        self.has_spoken = true;
        let clean = self.paths.push(text);
        self.gathered.push_str(&clean);
        if !self.gathered.is_empty() && self.due.is_none() {
            let now = Instant::now();
            self.due = Some(
                self.told_at
                    .map_or(now, |told_at| now.max(told_at + GATHERED)),
            );
        }
    }

    /// Tells what was gathered.
    pub(super) async fn flush(&mut self) -> Result<(), StoreError> {
        self.due = None;
        if self.gathered.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.gathered);
        self.told_at = Some(Instant::now());
        // Kept before it is told: a stop in between loses nothing.
        self.said.push_str(&text);
        self.turn
            .tell(ThreadEventBody::Text {
                reply: self.turn.reply(),
                text,
            })
            .await
    }

    /// Tells everything that is held back, as something else is told next.
    pub(super) async fn flush_all(&mut self) -> Result<(), StoreError> {
        let rest = self.thoughts.end();
        self.gather(&rest);
        let rest = self.paths.end();
        self.gathered.push_str(&rest);
        self.flush().await
    }
}
