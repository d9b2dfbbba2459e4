//! Bytes as they come: searched for a pattern across everything, parsed from some point on.

use memchr::memmem;

/// Parsed bytes are kept until so many of them have gathered, then thrown away at once.
const THROWN_AWAY_AT: usize = 256 * 1024;

/// What came in and is still needed.
#[derive(Debug, Default)]
pub(super) struct Window {
    bytes: Vec<u8>,
    /// Everything before was handed on or discarded.
    parsed: usize,
    /// No match begins before.
    searched: usize,
}

impl Window {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Where the pattern begins, if it is among what was not searched yet. One that begins in
    /// bytes that were parsed already is found too.
    pub(super) fn find(&mut self, pattern: &[u8]) -> Option<usize> {
        match memmem::find(&self.bytes[self.searched..], pattern) {
            Some(at) => {
                self.searched += at;
                Some(self.searched)
            }
            None => {
                let undecided = pattern.len().saturating_sub(1);
                self.searched = self
                    .searched
                    .max(self.bytes.len().saturating_sub(undecided));
                None
            }
        }
    }

    /// The bytes of a match, if all have come.
    pub(super) fn at(&self, begin: usize, length: usize) -> Option<&[u8]> {
        self.bytes.get(begin..begin + length)
    }

    /// What was not parsed yet.
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.parsed..]
    }

    /// Hands on so many bytes.
    pub(super) fn advance(&mut self, length: usize) {
        self.parsed = (self.parsed + length).min(self.bytes.len());
        self.compact();
    }

    /// Hands on so many bytes where nothing is searched for any more.
    pub(super) fn skip_rest(&mut self, length: usize) {
        self.skip_to(self.parsed + length);
    }

    /// Goes on behind a match; what came before it is discarded.
    pub(super) fn skip_to(&mut self, position: usize) {
        self.parsed = position.min(self.bytes.len());
        self.searched = self.searched.max(self.parsed);
        self.compact();
    }

    /// Discards everything that was not parsed yet. The end may still be the begin of a match.
    pub(super) fn discard(&mut self) {
        self.parsed = self.bytes.len();
        self.compact();
    }

    fn compact(&mut self) {
        let done = self.parsed.min(self.searched);
        if done == self.bytes.len() {
            self.bytes.clear();
        } else if done >= THROWN_AWAY_AT {
            self.bytes.drain(..done);
        } else {
            return;
        }
        self.parsed -= done;
        self.searched -= done;
    }
}
