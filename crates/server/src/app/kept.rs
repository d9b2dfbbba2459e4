//! What is kept of an execution's events: all of them, and so much of what it prints and shows.

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
    printed_bytes: u64,
    dropped_bytes: u64,
    /// The first limit that was reached, in bytes: of characters those that they have.
    limit_bytes: Option<u64>,
    /// How many events other than printed output are still kept, and how many bytes of them.
    shown_left: u32,
    shown_bytes_left: u64,
}

impl Kept {
    pub(super) fn new(id: ExecutionId, profile: &Profile) -> Self {
        Self::of(id, profile.settings.max_output_characters as usize)
    }

    fn of(id: ExecutionId, characters: usize) -> Self {
        Self {
            id,
            seq: 0,
            waiting: Vec::new(),
            characters_left: characters,
            printed_bytes: 0,
            dropped_bytes: 0,
            limit_bytes: None,
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
            EventBody::OutputDropped {
                dropped_bytes,
                limit_bytes,
            } => {
                self.leave_out(dropped_bytes, limit_bytes);
                None
            }
            other => self.fits(&other).then_some(other),
        };
        if let Some(body) = body {
            self.push(body);
        }
    }

    fn leave_out(&mut self, bytes: u64, limit_bytes: u64) {
        self.dropped_bytes += bytes;
        self.limit_bytes.get_or_insert(limit_bytes);
    }

    /// Whether there is room for something that is shown, cleared or raised: of that too only so
    /// much is kept of one execution.
    fn fits(&mut self, body: &EventBody) -> bool {
        let bytes = serde_json::to_vec(body).map_or(0, |text| text.len() as u64);
        if self.shown_left == 0 || bytes > self.shown_bytes_left {
            self.leave_out(bytes, MAX_SHOWN_BYTES);
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
            self.printed_bytes += bytes.len() as u64;
            return Some(Output(bytes));
        }
        let head: String = text.chars().take(self.characters_left).collect();
        self.characters_left = 0;
        self.printed_bytes += head.len() as u64;
        let dropped = (bytes.len() as u64).saturating_sub(head.len() as u64);
        self.leave_out(dropped, self.printed_bytes);
        (!head.is_empty()).then(|| Output(head.into_bytes().into()))
    }

    /// Tells of what was dropped, if anything was.
    pub(super) fn note_dropped(&mut self) {
        if self.dropped_bytes > 0 {
            self.push(EventBody::OutputDropped {
                dropped_bytes: self.dropped_bytes,
                limit_bytes: self.limit_bytes.unwrap_or(self.printed_bytes),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dropped(kept: &mut Kept) -> Option<(u64, u64)> {
        kept.note_dropped();
        kept.waiting.iter().find_map(|event| match event.body {
            EventBody::OutputDropped {
                dropped_bytes,
                limit_bytes,
            } => Some((dropped_bytes, limit_bytes)),
            _ => None,
        })
    }

    fn printed(text: &str) -> EventBody {
        EventBody::Stdout(Output(text.as_bytes().to_vec().into()))
    }

    #[test]
    fn a_limit_of_characters_is_told_in_the_bytes_that_they_have() {
        let mut kept = Kept::of(ExecutionId::new(), 5);
        kept.take(printed("año"));
        kept.take(printed("日本語です"));
        kept.take(printed("more"));
        // 4 bytes of the first, 6 of the second; 9 of its and 4 of the third are dropped.
        assert_eq!(dropped(&mut kept), Some((13, 10)));
    }

    #[test]
    fn a_limit_of_the_agents_is_told_as_it_is() {
        let mut kept = Kept::of(ExecutionId::new(), 100);
        kept.take(printed("all"));
        assert_eq!(dropped(&mut kept), None);
        kept.take(EventBody::OutputDropped {
            dropped_bytes: 7,
            limit_bytes: 1 << 20,
        });
        assert_eq!(dropped(&mut kept), Some((7, 1 << 20)));
    }
}
