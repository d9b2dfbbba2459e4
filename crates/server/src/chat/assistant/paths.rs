//! Takes sandbox paths out of what a model says: people are shown file names, and no link that
//! leads nowhere. Works on text that comes in pieces, wherever they are cut.

/// Folders of a sandbox, or of what models remember from elsewhere.
const FOLDERS: [&str; 4] = ["/workspace", "/mnt/data", "/mnt/user-data", "/tmp"];

/// What stands before a path that is written as an address.
const SCHEMES: [&str; 3] = ["sandbox:", "file:", "attachment:"];

/// What a folder of the sandbox is called where no file is named.
const THE_FOLDER: &str = "the working folder";

/// Most bytes that are held back until it is known what they are.
const MAX_HELD: usize = 2048;

/// Takes paths out of a text that comes in pieces.
#[derive(Debug, Default)]
pub(super) struct WithoutPaths {
    /// What may be the beginning of a path or link.
    held: String,
    /// The last character that went out.
    before: Option<char>,
}

/// What stands at the beginning of a text.
enum Found {
    /// Nothing to be taken out.
    Nothing,
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
            match at(rest, self.before, is_last) {
                Found::Open => {
                    rest.clone_into(&mut self.held);
                    break;
                }
                Found::Other(bytes, other) => {
                    clean.push_str(&other);
                    self.before = other.chars().last().or(self.before);
                    rest = &rest[bytes..];
                }
                Found::Nothing => {
                    clean.push(first);
                    self.before = Some(first);
                    rest = &rest[first.len_utf8()..];
                }
            }
        }
        clean
    }
}

/// Looks at the beginning of a text.
fn at(text: &str, before: Option<char>, is_last: bool) -> Found {
    match text.as_bytes()[0] {
        b'[' => link(text, is_last),
        b'!' if text.len() == 1 && !is_last => Found::Open,
        b'!' if text[1..].starts_with('[') => match link(&text[1..], is_last) {
            Found::Other(bytes, other) => Found::Other(bytes + 1, other),
            found => found,
        },
        _ => path(text, before, is_last),
    }
}

/// `[words](address)`, where the address is a path of a sandbox.
fn link(text: &str, is_last: bool) -> Found {
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
    // An image or link whose address is a bare name leads nowhere either.
    let is_bare = !address.is_empty() && !address.contains(['/', ':', '#', '?']);
    let name = match whole_path(address) {
        Some(name) => name,
        None if is_bare => decoded(address),
        None => return Found::Nothing,
    };
    let words = words.trim().trim_matches(['`', '*', '_']);
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
fn path(text: &str, before: Option<char>, is_last: bool) -> Found {
    // What goes on from a word is part of another address, such as https://host/workspace/a.
    if before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~')) {
        return Found::Nothing;
    }
    let mut may_begin = false;
    for start in SCHEMES.into_iter().chain(FOLDERS) {
        if begins_with(text, start) {
            return path_after(text, start, is_last);
        }
        may_begin |= !is_last && begins_with(start, text);
    }
    if may_begin {
        Found::Open
    } else {
        Found::Nothing
    }
}

fn path_after(text: &str, start: &str, is_last: bool) -> Found {
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
    // What ends a sentence is no part of the name.
    let whole = text[..end].trim_end_matches(['.', ':', '!', '?']);
    match whole_path(whole) {
        Some(name) => Found::Other(whole.len(), name),
        None => Found::Nothing,
    }
}

/// The name at the end of a path of a sandbox; nothing where it is none.
fn whole_path(text: &str) -> Option<String> {
    let scheme = SCHEMES.into_iter().find(|scheme| begins_with(text, scheme));
    let path = match scheme {
        // `file:///a`, `sandbox:/a`, `sandbox:a`.
        Some(scheme) => text[scheme.len()..].trim_start_matches('/'),
        None => {
            let folder = FOLDERS
                .into_iter()
                .find(|folder| begins_with(text, folder))?;
            let rest = &text[folder.len()..];
            if !rest.is_empty() && !rest.starts_with('/') {
                return None;
            }
            rest
        }
    };
    if scheme.is_some() && path.is_empty() {
        return None;
    }
    let is_folder = |path: &str| {
        let path = format!("/{}", path.trim_matches('/'));
        FOLDERS.contains(&path.as_str())
    };
    let name = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    if name.is_empty() || scheme.is_some() && is_folder(path) {
        return Some(THE_FOLDER.into());
    }
    Some(if scheme.is_some() {
        decoded(name)
    } else {
        name.into()
    })
}

fn begins_with(text: &str, start: &str) -> bool {
    let part = text.as_bytes().get(..start.len());
    part.is_some_and(|part| part.eq_ignore_ascii_case(start.as_bytes()))
}

/// An address with its percent signs read.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [(&str, &str); 34] = [
        ("Saved as /workspace/deck.pptx.", "Saved as deck.pptx."),
        ("See `/workspace/out/a b.csv`!", "See `a b.csv`!"),
        ("(/workspace/a.csv, /tmp/b.csv)", "(a.csv, b.csv)"),
        ("**/workspace/ä.xlsx**", "**ä.xlsx**"),
        ("sandbox:/mnt/data/x.pdf is there", "x.pdf is there"),
        ("file:///workspace/My%20Report.docx", "My Report.docx"),
        ("FILE:///workspace/x.csv", "x.csv"),
        (
            "[Download the deck](sandbox:/workspace/deck.pptx)",
            "Download the deck (deck.pptx)",
        ),
        (
            "[deck.pptx](sandbox:/workspace/deck.pptx) is ready",
            "deck.pptx is ready",
        ),
        ("[Get deck.pptx](/workspace/deck.pptx)", "Get deck.pptx"),
        ("![chart](/workspace/chart.png)\n", "chart (chart.png)\n"),
        ("![](sandbox:/workspace/chart.png)", "chart.png"),
        ("[a](</workspace/my file.csv>)", "a (my file.csv)"),
        ("[a](/workspace/x.csv \"title\")", "a (x.csv)"),
        ("[deck](deck.pptx)", "deck (deck.pptx)"),
        ("[`/workspace/x.csv`](/workspace/x.csv)", "x.csv"),
        ("in /workspace", "in the working folder"),
        ("in /workspace/ now", "in the working folder now"),
        ("[here](sandbox:/workspace/)", "here"),
        ("/mnt/data/sub/dir/y.json: done", "y.json: done"),
        // What is no path of a sandbox stays.
        (
            "https://example.com/workspace/a.csv",
            "https://example.com/workspace/a.csv",
        ),
        (
            "[docs](https://example.com/tmp/x)",
            "[docs](https://example.com/tmp/x)",
        ),
        ("a/workspace/b", "a/workspace/b"),
        ("/workspaces/a", "/workspaces/a"),
        (
            "df[['a', 'b']] and [x] and [y](",
            "df[['a', 'b']] and [x] and [y](",
        ),
        ("[1]: note\n[2] more", "[1]: note\n[2] more"),
        ("- [ ] to do\n- [x] done", "- [ ] to do\n- [x] done"),
        (
            "profile: fine, sandbox: fine",
            "profile: fine, sandbox: fine",
        ),
        ("either/or and 1/2 and /tm", "either/or and 1/2 and /tm"),
        ("wow! great!", "wow! great!"),
        (
            "[jump](#part) [mail](mailto:a@b)",
            "[jump](#part) [mail](mailto:a@b)",
        ),
        ("the file: x.csv", "the file: x.csv"),
        ("100 % of /workspace/100%.csv", "100 % of 100%.csv"),
        ("世界 /workspace/世界.csv 🙂", "世界 世界.csv 🙂"),
    ];

    #[test]
    fn paths_become_names_and_nothing_else_changes() {
        for (said, shown) in CASES {
            assert_eq!(without_paths(said), shown, "{said}");
        }
    }

    #[test]
    fn it_does_not_matter_where_the_pieces_are_cut() {
        for (said, shown) in CASES {
            let places: Vec<_> = said.char_indices().map(|(at, _)| at).collect();
            for at in &places {
                let mut filter = WithoutPaths::default();
                let mut clean = filter.push(&said[..*at]);
                clean.push_str(&filter.push(&said[*at..]));
                clean.push_str(&filter.end());
                assert_eq!(clean, shown, "{said} cut at {at}");
            }
            let mut filter = WithoutPaths::default();
            let mut clean = String::new();
            for c in said.chars() {
                clean.push_str(&filter.push(&c.to_string()));
            }
            clean.push_str(&filter.end());
            assert_eq!(clean, shown, "{said} letter by letter");
        }
    }

    #[test]
    fn what_never_ends_is_not_held_for_ever() {
        let mut filter = WithoutPaths::default();
        let mut out = 0;
        for _ in 0..100 {
            out += filter.push(&format!("[{}", "x".repeat(99))).len();
        }
        assert!(out > 100 * 100 - 2 * MAX_HELD, "{out}");
        let mut filter = WithoutPaths::default();
        let long = format!("/workspace/{}", "x".repeat(3 * MAX_HELD));
        assert!(!filter.push(&long).contains("workspace"));
    }
}
