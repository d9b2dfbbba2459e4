//! Where below the results folder a file goes whose name came out of a sandbox.
//!
//! Names are hostile: this turns one into a path that stays below the folder, that can be typed
//! and shown, and that later versions can be numbered in. It touches no file.

use glovebox_protocol::file::{FileName, escape_for_display};

/// Longest part of a path in bytes, as Linux takes it.
const MAX_PART: usize = 255;

/// Most folders above a file that are kept.
const MAX_FOLDERS: usize = 8;

/// A path below the results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SafePath {
    /// The folders above the file, outermost first.
    pub(crate) folders: Vec<String>,
    /// The file.
    pub(crate) file: String,
}

impl SafePath {
    /// The path for an artifact. Folders that cannot be kept are dropped, not made up.
    pub(crate) fn of(name: &FileName) -> Self {
        let mut parts: Vec<_> = name
            .as_bytes()
            .split(|byte| *byte == b'/')
            .map(safe_part)
            .collect();
        let file = parts.pop().unwrap_or_else(|| "file".into());
        if parts.len() > MAX_FOLDERS {
            parts.clear();
        }
        Self {
            folders: parts,
            file,
        }
    }

    /// The same file without its folders, whose names become part of its own.
    pub(crate) fn flattened(&self) -> Self {
        let mut file = self.folders.join("-");
        if !file.is_empty() {
            file.push('-');
        }
        file.push_str(&self.file);
        Self {
            folders: Vec::new(),
            file: shortened(&file, MAX_PART),
        }
    }

    /// The file's name for its n-th version: `report.xlsx`, `report-2.xlsx`, and so on.
    pub(crate) fn version(&self, number: u32) -> String {
        if number <= 1 {
            return self.file.clone();
        }
        let (stem, ending) = stem_and_ending(&self.file);
        let ending = format!("-{number}{ending}");
        format!(
            "{}{ending}",
            cut(stem, MAX_PART.saturating_sub(ending.len()))
        )
    }
}

/// One part of a path, made harmless: text only, nothing that moves a cursor or hides, no dot
/// in front, not too long.
fn safe_part(part: &[u8]) -> String {
    let mut text = String::with_capacity(part.len());
    for chunk in part.utf8_chunks() {
        for character in chunk.valid().chars() {
            text.push(if is_harmless(character) {
                character
            } else {
                '_'
            });
        }
        text.extend(chunk.invalid().iter().map(|_| '_'));
    }
    if text.starts_with('.') {
        text.replace_range(..1, "_");
    }
    // Such names cannot be opened or removed where the folder is shared with Windows.
    if text.ends_with(['.', ' ']) {
        text.pop();
        text.push('_');
    }
    if is_reserved(&text) {
        text.insert(0, '_');
    }
    shortened(&text, MAX_PART)
}

fn is_harmless(character: char) -> bool {
    if matches!(character, '\\' | '/') {
        return false;
    }
    let mut buffer = [0; 4];
    let text: &str = character.encode_utf8(&mut buffer);
    escape_for_display(text.as_bytes()) == text
}

/// Names that stand for devices where the folder is shared with Windows.
fn is_reserved(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or(text).trim_end();
    let numbered = stem.len() == 4
        && stem.is_char_boundary(3)
        && stem.ends_with(|c: char| c.is_ascii_digit())
        && ["com", "lpt"]
            .iter()
            .any(|name| stem[..3].eq_ignore_ascii_case(name));
    numbered
        || ["con", "prn", "aux", "nul"]
            .iter()
            .any(|name| stem.eq_ignore_ascii_case(name))
}

/// Cuts the stem, so that the ending stays.
fn shortened(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.into();
    }
    let (stem, ending) = stem_and_ending(text);
    format!("{}{ending}", cut(stem, limit.saturating_sub(ending.len())))
}

/// The beginning of a text, whole characters only.
fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// A name without its ending, and the ending with its dot. An ending over 16 bytes is none.
fn stem_and_ending(text: &str) -> (&str, &str) {
    match text.rfind('.') {
        Some(dot) if dot > 0 && text.len() - dot <= 16 => text.split_at(dot),
        _ => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &[u8]) -> SafePath {
        SafePath::of(&FileName::from_bytes(name).unwrap())
    }

    #[test]
    fn usual_names_stay_as_they_are() {
        let path = of("charts/2024/Größe & \"Preis\" 😀.png".as_bytes());
        assert_eq!(path.folders, ["charts", "2024"]);
        assert_eq!(path.file, "Größe & \"Preis\" 😀.png");
        assert_eq!(of(b"-rf.csv").file, "-rf.csv");
    }

    #[test]
    fn hostile_names_become_harmless() {
        let cases: [(&[u8], &str); 8] = [
            (b"a\x1b[2J\n.csv", "a_[2J_.csv"),
            (b"caf\xe9.csv", "caf_.csv"),
            ("a\u{202e}gnp.csv".as_bytes(), "a_gnp.csv"),
            (b".bashrc", "_bashrc"),
            (b"...", "_._"),
            (b"..\\..\\x.csv", "_._.._x.csv"),
            (b"NUL.csv", "_NUL.csv"),
            (b"com1", "_com1"),
        ];
        for (name, safe) in cases {
            assert_eq!(of(name).file, safe);
        }
    }

    #[test]
    fn versions_keep_the_ending_and_fit() {
        assert_eq!(of(b"report.xlsx").version(1), "report.xlsx");
        assert_eq!(of(b"report.xlsx").version(2), "report-2.xlsx");
        assert_eq!(of(b"README").version(12), "README-12");
        let long = format!("{}.csv", "ä".repeat(125) + "a");
        assert_eq!(of(long.as_bytes()).version(1), long);
        let name = of(long.as_bytes()).version(4_000_000_000);
        assert!(
            (254..=255).contains(&name.len()) && name.ends_with("ä-4000000000.csv"),
            "{name}"
        );
    }

    #[test]
    fn too_many_folders_are_dropped_and_a_taken_one_becomes_part_of_the_name() {
        assert!(of(b"a/a/a/a/a/a/a/a/a/x.csv").folders.is_empty());
        assert_eq!(of(b"a/b/x.csv").flattened().file, "a-b-x.csv");
    }
}
