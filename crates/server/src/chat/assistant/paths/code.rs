//! Code in what a model says: in fences of lines, and between backticks within a line.

use super::address::{THE_FOLDER, is_plain_path, whole_path};
use super::{Found, MAX_HELD};

/// Fewest marks of a fence.
const FENCE: usize = 3;

/// How far the lines of a text have come.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Whether the line has more than spaces so far.
    has_begun: bool,
    /// The mark and the length of the fence that is open.
    fence: Option<(char, usize)>,
    /// The fence that begins with what is passed next.
    next: Option<Option<(char, usize)>>,
}

impl Lines {
    /// Whether the text is code in a fence.
    pub(super) fn is_in_fence(&self) -> bool {
        self.fence.is_some()
    }

    /// Notes what was passed on.
    pub(super) fn pass(&mut self, text: &str) {
        if let Some(fence) = self.next.take() {
            self.fence = fence;
        }
        for character in text.chars() {
            self.has_begun = character != '\n' && (self.has_begun || !character.is_whitespace());
        }
    }

    /// Looks for code at the beginning of a text. What is found is to be passed on at once.
    pub(super) fn at(&mut self, text: &str, is_last: bool) -> Found {
        let Some(mark) = text.chars().next().filter(|c| matches!(c, '`' | '~')) else {
            return Found::Nothing;
        };
        let run = text.len() - text.trim_start_matches(mark).len();
        if run == text.len() && !is_last {
            return Found::Open;
        }
        let after = &text[run..];
        match self.fence {
            Some((open, length)) => {
                let is_alone = after.chars().next().is_none_or(char::is_whitespace);
                if !self.has_begun && mark == open && run >= length && is_alone {
                    self.next = Some(None);
                }
                Found::Code(run)
            }
            None if run >= FENCE && !self.has_begun => self.fence(text, run, is_last),
            None if mark == '`' => inline(text, run, is_last),
            None => Found::Nothing,
        }
    }

    /// A fence, where what stands behind it is a language; three backticks may also be those of code
    /// within a line.
    fn fence(&mut self, text: &str, run: usize, is_last: bool) -> Found {
        let (marks, after) = text.split_at(run);
        let mark = if marks.starts_with('`') { '`' } else { '~' };
        match after.find(['\n', mark]) {
            None if !is_last => Found::Open,
            Some(at) if mark == '`' && after[at..].starts_with(mark) => inline(text, run, is_last),
            _ => {
                self.next = Some(Some((mark, run)));
                Found::Code(run)
            }
        }
    }
}

/// Code between two runs of as many backticks: left as it is, but where it is a path and nothing else.
fn inline(text: &str, run: usize, is_last: bool) -> Found {
    let (open, mut from) = (&text[..run], run);
    let paragraph = text.find("\n\n");
    let end = paragraph.unwrap_or(text.len()).min(run + MAX_HELD);
    let closing = loop {
        let Some(at) = text.as_bytes()[from..end].iter().position(|b| *b == b'`') else {
            break None;
        };
        let found = &text[from + at..];
        let length = found.len() - found.trim_start_matches('`').len();
        // More of them may come.
        let is_whole = from + at + length < text.len() || is_last;
        if length == run && is_whole {
            break Some(from + at);
        }
        from = (from + at + length).min(end);
    };
    match closing {
        Some(at) => {
            let inner = text[run..at].trim();
            match whole_path(inner).filter(|_| is_plain_path(inner)) {
                Some(name) if name == THE_FOLDER => Found::Other(at + run, name),
                Some(name) => Found::Other(at + run, format!("{open}{name}{open}")),
                None => Found::Code(at + run),
            }
        }
        None if is_last || paragraph.is_some() => Found::Code(run),
        None => Found::Open,
    }
}
