//! Files of a workspace: their names on the wire and what is known of them.

use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::sign::BodyDigest;

/// Longest path in bytes.
pub const MAX_PATH: usize = 4095;
/// Longest part of a path in bytes.
pub const MAX_PART: usize = 255;

/// A path below `/workspace`, as bytes: Linux names are bytes, and nothing is lost by calling
/// them text. It has no empty, `.` or `..` part, no NUL and does not begin with `/`; it is
/// still only a name, and whoever opens it must not follow links.
///
/// On the wire it is percent-encoded with one spelling per name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FileName(Vec<u8>);

/// A name cannot be a path below the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// There is nothing in it.
    #[error("the name is empty")]
    Empty,
    /// It begins with `/`, or has an empty, `.` or `..` part.
    #[error("the name has an empty, `.` or `..` part, or begins or ends with `/`")]
    NotBelow,
    /// It holds a NUL byte.
    #[error("the name holds a NUL byte")]
    Nul,
    /// It, or a part of it, is too long.
    #[error("the name is over {MAX_PATH} bytes, or a part of it over {MAX_PART}")]
    TooLong,
    /// Its wire form is not the one that it must have.
    #[error("the name is not percent-encoded as it must be")]
    Encoding,
}

impl FileName {
    /// Takes a path below the workspace, as bytes.
    ///
    /// # Errors
    /// When it is no such path.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, InvalidName> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(InvalidName::Empty);
        }
        if bytes.contains(&0) {
            return Err(InvalidName::Nul);
        }
        if bytes.len() > MAX_PATH {
            return Err(InvalidName::TooLong);
        }
        for part in bytes.split(|byte| *byte == b'/') {
            if matches!(part, b"" | b"." | b"..") {
                return Err(InvalidName::NotBelow);
            }
            if part.len() > MAX_PART {
                return Err(InvalidName::TooLong);
            }
        }
        Ok(Self(bytes))
    }

    /// The path as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The path as the operating system takes it.
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }

    /// The last part of the path.
    #[must_use]
    pub fn base(&self) -> &[u8] {
        self.0
            .rsplit(|byte| *byte == b'/')
            .next()
            .unwrap_or(&self.0)
    }

    /// Whether a part of the path begins with a dot.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.0
            .split(|byte| *byte == b'/')
            .any(|part| part.first() == Some(&b'.'))
    }

    /// The wire form: everything but letters, digits and `-_.~/` as `%XX`.
    #[must_use]
    pub fn encoded(&self) -> String {
        let mut text = String::with_capacity(self.0.len());
        for byte in &self.0 {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                    text.push(char::from(*byte));
                }
                _ => {
                    // Writing to a `String` cannot fail.
                    let _ = write!(text, "%{byte:02X}");
                }
            }
        }
        text
    }

    /// The name for people: control characters, direction marks and bytes that are no text are
    /// shown as escapes, so that a hostile name can neither move the cursor nor pass for another.
    #[must_use]
    pub fn for_display(&self) -> String {
        escape_for_display(&self.0)
    }
}

/// Bytes for people, on one line: what is not plainly printable becomes an escape.
#[must_use]
pub fn escape_for_display(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() || is_deceptive(character) {
                let _ = write!(text, "{}", character.escape_unicode());
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// Characters that change how the ones around them are read, or cannot be seen.
#[must_use]
pub const fn is_deceptive(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180e}' | '\u{200b}' | '\u{200e}'..='\u{200f}'
            | '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

impl fmt::Display for FileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.for_display())
    }
}

impl FromStr for FileName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        let mut bytes = Vec::with_capacity(text.len());
        let mut rest = text.as_bytes();
        while let Some((first, tail)) = rest.split_first() {
            if *first == b'%' {
                let (pair, tail) = tail.split_at_checked(2).ok_or(InvalidName::Encoding)?;
                let pair = std::str::from_utf8(pair).map_err(|_| InvalidName::Encoding)?;
                let byte = u8::from_str_radix(pair, 16).map_err(|_| InvalidName::Encoding)?;
                bytes.push(byte);
                rest = tail;
            } else {
                bytes.push(*first);
                rest = tail;
            }
        }
        let name = Self::from_bytes(bytes)?;
        // One name has one spelling, or a signed path could mean the same file in two ways.
        if name.encoded() == text {
            Ok(name)
        } else {
            Err(InvalidName::Encoding)
        }
    }
}

impl TryFrom<String> for FileName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<FileName> for String {
    fn from(name: FileName) -> Self {
        name.encoded()
    }
}

/// What kind of thing a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link; never followed.
    Symlink,
    /// A FIFO, socket or device.
    Special,
}

/// What is known of one file without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// Its path below the workspace.
    pub name: FileName,
    /// What it is.
    pub kind: FileKind,
    /// Its size in bytes, as the program made it look; reading may give fewer.
    pub bytes: u64,
    /// When it was last changed, in milliseconds since 1970 (UTC), as the program set it.
    pub modified_ms: i64,
}

/// Answer to `GET /v1/list[?after=NAME]`: everything below the workspace, folders before what
/// is in them, at most 10 000 entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The entries, sorted by name.
    pub entries: Vec<FileStat>,
    /// Whether there are more than are listed.
    pub truncated: bool,
}

/// Answer to `PUT /v1/files/NAME`, and the document that ends the stream of
/// `GET /v1/files/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transferred {
    /// The file's path below the workspace.
    pub name: FileName,
    /// Bytes that were moved.
    pub bytes: u64,
    /// SHA-256 over exactly those bytes.
    pub sha256: BodyDigest,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_path_that_leaves_the_workspace_is_refused() {
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            "./a",
            "a/.",
            "%2E%2E/x",
            "a%2Fb",
            "%2e",
            "a%00b",
            "%",
            "%2",
            "%zz",
            "a%62",
        ] {
            assert!(bad.parse::<FileName>().is_err(), "`{bad}` was accepted");
        }
    }

    #[test]
    fn a_hostile_name_is_harmless_on_screen() {
        let name = FileName::from_bytes(&b"a\x1b[2Jb\xff\xe2\x80\xaec\n"[..]).unwrap();
        assert_eq!(name.for_display(), r"a\u{1b}[2Jb\xff\u{202e}c\u{a}");
    }

    proptest! {
        #[test]
        fn every_name_survives_the_wire(bytes in proptest::collection::vec(any::<u8>(), 1..300)) {
            if let Ok(name) = FileName::from_bytes(bytes) {
                prop_assert_eq!(name.encoded().parse::<FileName>().unwrap(), name);
            }
        }

        #[test]
        fn one_name_has_one_spelling(text in "[%a-fA-F0-9./-]{1,20}") {
            if let Ok(name) = text.parse::<FileName>() {
                prop_assert_eq!(name.encoded(), text);
            }
        }
    }
}
