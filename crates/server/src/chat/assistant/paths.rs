//! Takes sandbox paths out of what a model says: people are shown file names, and no link that
//! leads nowhere. Code is left as it is: in a fence always, within a line where it is more than a
//! path. Works on text that comes in pieces, wherever they are cut.

mod address;
mod code;

use self::address::{FOLDERS, SCHEMES, THE_FOLDER, begins_with, decoded, is_file_name, whole_path};
use self::code::Lines;

pub(super) use self::address::relative;

/// Most bytes that are held back until it is known what they are.
const MAX_HELD: usize = 2048;

/// Takes paths out of a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct WithoutPaths {
    /// What may be the beginning of a path, link or piece of code.
    held: String,
    before: Before,
    lines: Lines,
}

/// The last characters that went out.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    last: Option<char>,
    last_but_one: Option<char>,
}

/// What stands at the beginning of a text.
enum Found {
    /// Nothing to be taken out.
    Nothing,
    /// So many bytes that stay as they are.
    Code(usize),
    /// So many bytes, to be written otherwise.
    Other(usize, String),
    /// It depends on what comes next.
    Open,
}

/// Takes paths out of a whole text.
pub(super) fn without_paths(text: &str) -> String {
    let mut filter = WithoutPaths::default();
    let mut clean = filter.push(text);
    clean.push_str(&filter.end());
    clean
}

impl WithoutPaths {
    /// Takes a piece and gives what is certain now.
    pub(super) fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        self.take(false)
    }

    /// Gives the rest.
    pub(super) fn end(&mut self) -> String {
        self.take(true)
    }

    fn take(&mut self, is_end: bool) -> String {
        let held = std::mem::take(&mut self.held);
        let mut clean = String::new();
        let mut rest = held.as_str();
        while let Some(first) = rest.chars().next() {
            let is_last = is_end || rest.len() > MAX_HELD;
            let found = match self.lines.at(rest, is_last) {
                Found::Nothing if !self.lines.is_in_fence() => at(rest, self.before, is_last),
                found => found,
            };
            let (bytes, shown) = match found {
                Found::Open => {
                    rest.clone_into(&mut self.held);
                    break;
                }
                Found::Code(bytes) => (bytes, rest[..bytes].to_owned()),
                Found::Other(bytes, other) => (bytes, other),
                Found::Nothing => (first.len_utf8(), first.to_string()),
            };
            self.lines.pass(&rest[..bytes]);
            self.before.pass(&shown);
            clean.push_str(&shown);
            rest = &rest[bytes..];
        }
        clean
    }
}

impl Before {
    fn pass(&mut self, shown: &str) {
        for character in shown.chars().skip(shown.chars().count().saturating_sub(2)) {
            self.last_but_one = self.last.replace(character);
        }
    }

    /// Whether what comes goes on from a word, as `[0]` in `table[0]`.
    fn is_word(self) -> bool {
        self.last
            .is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | ')' | ']'))
    }

    /// Whether what comes is the text that a call or an assignment begins with.
    fn is_argument(self) -> bool {
        matches!(self.last, Some('"' | '\'')) && matches!(self.last_but_one, Some('(' | '='))
    }
}

/// Looks at the beginning of a text that is no code.
fn at(text: &str, before: Before, is_last: bool) -> Found {
    match text.as_bytes()[0] {
        b'[' => link(text, before, is_last),
        b'!' if text.len() == 1 && !is_last => Found::Open,
        b'!' if text[1..].starts_with('[') => match link(&text[1..], before, is_last) {
            Found::Other(bytes, other) => Found::Other(bytes + 1, other),
            found => found,
        },
        _ => path(text, before, is_last),
    }
}

/// `[words](address)`, where the address is a path of a sandbox.
fn link(text: &str, before: Before, is_last: bool) -> Found {
    let open = if is_last { Found::Nothing } else { Found::Open };
    let Some(middle) = text.find("](") else {
        let goes_on = text.len() > 1 && text[1..].contains(['\n', '[']);
        let is_closed = text.find(']').is_some_and(|at| at + 1 < text.len());
        return if goes_on || is_closed {
            Found::Nothing
        } else {
            open
        };
    };
    let words = &text[1..middle];
    if words.contains(['\n', ']']) {
        return Found::Nothing;
    }
    let after = &text[middle + 2..];
    let (address, length) = match after.strip_prefix('<') {
        Some(inner) => match inner.find(['>', '\n']) {
            Some(at) => (&inner[..at], at + 2),
            None => return open,
        },
        None => match after.find([')', '\n']) {
            Some(at) => (after[..at].split(" \"").next().unwrap_or_default(), at),
            None => return open,
        },
    };
    let Some(closing) = after.get(length..).and_then(|rest| rest.find([')', '\n'])) else {
        return open;
    };
    let total = middle + 2 + length + closing + 1;
    let address = address.trim();
    let words = words.trim().trim_matches(['`', '*', '_']);
    // An image or link whose address is the name of a file leads nowhere either. Code is written
    // with the same marks: `table[key](value)`, `[](auto x) {…}`.
    let is_bare = !before.is_word() && !words.is_empty() && is_file_name(address);
    let name = match whole_path(address) {
        Some(name) => name,
        None if is_bare => decoded(address),
        None => return Found::Nothing,
    };
    let shown = if words.is_empty() || words == name || whole_path(words).is_some() {
        name
    } else if words.contains(&name) || name == THE_FOLDER {
        words.to_owned()
    } else {
        format!("{words} ({name})")
    };
    Found::Other(total, shown)
}

/// A path of a sandbox at the beginning of a text.
fn path(text: &str, before: Before, is_last: bool) -> Found {
    // What goes on from a word is part of another address, such as https://host/workspace/a.
    let goes_on = before
        .last
        .is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~'));
    if goes_on || before.is_argument() {
        return Found::Nothing;
    }
    let mut may_begin = false;
    for start in SCHEMES.into_iter().chain(FOLDERS) {
        if begins_with(text, start) {
            return path_after(text, start, before, is_last);
        }
        may_begin |= !is_last && begins_with(start, text);
    }
    if may_begin {
        Found::Open
    } else {
        Found::Nothing
    }
}

fn path_after(text: &str, start: &str, before: Before, is_last: bool) -> Found {
    let end = text
        .char_indices()
        .skip(start.len())
        .find(|(_, c)| c.is_whitespace() || "\"'`<>|()[]{}*,;".contains(*c))
        .map(|(at, _)| at);
    let end = match end {
        Some(end) => end,
        None if is_last => text.len(),
        None => return Found::Open,
    };
    // All files of a folder, in a command; a folder between stars is only made bold.
    let is_pattern = text[..end].ends_with('/') && text[end..].starts_with('*');
    if is_pattern && before.last != Some('*') {
        return Found::Nothing;
    }
    // What ends a sentence is no part of the name.
    let whole = text[..end].trim_end_matches(['.', ':', '!', '?']);
    match whole_path(whole) {
        Some(name) => Found::Other(whole.len(), name),
        None => Found::Nothing,
    }
}

#[cfg(test)]
mod tests;
