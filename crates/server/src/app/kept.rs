//! What is kept of an execution: its events until they are stored, and how much more there may be.

use chrono::Utc;
use glovebox_protocol::event::{Event, EventBody, Output};
use glovebox_protocol::ids::ExecutionId;
use glovebox_store::Profile;

/// How many events other than printed output are kept of one execution, and how many bytes of them
/// as they are stored: pictures of a long report fit, a loop that fills the database does not.
const MAX_SHOWN: u32 = 2_000;
const MAX_SHOWN_BYTES: u64 = 16 << 20;

/// Events that are not stored yet, and how much output is kept.
pub(super) struct Kept {
    pub(super) id: ExecutionId,
    pub(super) seq: u64,
    pub(super) waiting: Vec<Event>,
    characters_left: usize,
    dropped_bytes: u64,
    limit_characters: u32,
    /// How many events other than printed output are still kept, and how many bytes of them.
    shown_left: u32,
    shown_bytes_left: u64,
}

impl Kept {
    pub(super) fn new(id: ExecutionId, profile: &Profile) -> Self {
        let limit = profile.settings.max_output_characters;
        Self {
            id,
            seq: 0,
            waiting: Vec::new(),
            characters_left: limit as usize,
            dropped_bytes: 0,
            limit_characters: limit,
            shown_left: MAX_SHOWN,
            shown_bytes_left: MAX_SHOWN_BYTES,
        }
    }

    pub(super) fn push(&mut self, body: EventBody) {
        self.seq += 1;
        self.waiting.push(Event {
            seq: self.seq,
            at: Utc::now(),
            body,
        });
    }

    /// Keeps an event; of printed output as much as is kept of one execution.
    pub(super) fn take(&mut self, body: EventBody) {
        let body = match body {
            EventBody::Stdout(output) => self.cut(output).map(EventBody::Stdout),
            EventBody::Stderr(output) => self.cut(output).map(EventBody::Stderr),
            EventBody::OutputDropped { dropped_bytes, .. } => {
                self.dropped_bytes += dropped_bytes;
                None
            }
            other => self.fits(&other).then_some(other),
        };
        if let Some(body) = body {
            self.push(body);
        }
    }

    /// Whether there is room for something that is shown, cleared or raised: of that too only so
    /// much is kept of one execution.
    fn fits(&mut self, body: &EventBody) -> bool {
        let bytes = serde_json::to_vec(body).map_or(0, |text| text.len() as u64);
        if self.shown_left == 0 || bytes > self.shown_bytes_left {
            self.dropped_bytes += bytes;
            return false;
        }
        self.shown_left -= 1;
        self.shown_bytes_left -= bytes;
        true
    }

    fn cut(&mut self, output: Output) -> Option<Output> {
        let bytes = output.0;
        let text = String::from_utf8_lossy(&bytes);
        let characters = text.chars().count();
        if characters <= self.characters_left {
            self.characters_left -= characters;
            return Some(Output(bytes));
        }
        let head: String = text.chars().take(self.characters_left).collect();
        self.characters_left = 0;
        self.dropped_bytes += (bytes.len() as u64).saturating_sub(head.len() as u64);
        (!head.is_empty()).then(|| Output(head.into_bytes().into()))
    }

    pub(super) fn note_dropped(&mut self) {
        if self.dropped_bytes > 0 {
            self.push(EventBody::OutputDropped {
                dropped_bytes: self.dropped_bytes,
                limit_bytes: u64::from(self.limit_characters),
            });
        }
    }
}
