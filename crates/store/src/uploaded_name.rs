//! Names that people give the files that they bring, made safe to be names in a sandbox.

use std::collections::BTreeSet;

use glovebox_protocol::file::{MAX_PART, is_deceptive};
use unicode_normalization::UnicodeNormalization as _;

/// What a file is called whose name says nothing.
const NAMELESS: &str = "file";

/// Longest ending that is kept when a name is cut, in bytes with its dot.
const LONGEST_ENDING: usize = 32;

/// A name of one part that shows what it is: in one Unicode form, without folders, control
/// characters and marks that change how the rest is read, not hidden, at most 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UploadedName(String);

impl UploadedName {
    /// Makes a name of what somebody called a file. The same gives the same.
    #[must_use]
    pub fn of(given: &str) -> Self {
        let base = given.rsplit(['/', '\\']).next().unwrap_or_default();
        let plain: String = base
            .nfc()
            .map(|character| {
                if character.is_control() || is_deceptive(character) {
                    '_'
                } else {
                    character
                }
            })
            .collect();
        // A dot in front hides a file, and what is hidden never leaves a sandbox again.
        let shown = plain.trim().trim_start_matches('.').trim_start();
        let shown = if shown.is_empty() { NAMELESS } else { shown };
        Self(fitting(shown, ""))
    }

    /// The name itself.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same, or with the first number that is free, where one of some names is this one.
    #[must_use]
    pub fn free_among(&self, taken: &BTreeSet<Vec<u8>>) -> Self {
        let mut name = self.clone();
        let mut number = 1;
        while taken.contains(name.as_str().as_bytes()) {
            number += 1;
            name = self.numbered(number);
        }
        name
    }

    /// The name of the `number`th file of that name, from 2: `report (2).xlsx`.
    #[must_use]
    pub fn numbered(&self, number: u32) -> Self {
        Self(fitting(&self.0, &format!(" ({number})")))
    }
}

/// A name with something before its ending, cut to the length that a name may have.
fn fitting(name: &str, added: &str) -> String {
    let (stem, ending) = match name.rfind('.') {
        Some(dot) if dot > 0 && name.len() - dot <= LONGEST_ENDING => name.split_at(dot),
        _ => (name, ""),
    };
    let mut room = MAX_PART
        .saturating_sub(added.len() + ending.len())
        .min(stem.len());
    while !stem.is_char_boundary(room) {
        room -= 1;
    }
    format!("{}{added}{ending}", &stem[..room])
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::file::FileName;

    use super::*;

    #[test]
    fn a_name_is_made_safe_and_stays_what_it_was() {
        for (given, made) in [
            ("report.xlsx", "report.xlsx"),
            ("-rf", "-rf"),
            ("Ümsätze 'Q1' \"x\".csv", "Ümsätze 'Q1' \"x\".csv"),
            ("u\u{308}.csv", "ü.csv"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\a.txt", "a.txt"),
            (".bashrc", "bashrc"),
            ("..", "file"),
            ("", "file"),
            ("a/", "file"),
            ("a\0b\n.txt", "a_b_.txt"),
            ("gpj.\u{202e}exe", "gpj._exe"),
            ("  spaced .md ", "spaced .md"),
        ] {
            assert_eq!(UploadedName::of(given).as_str(), made, "{given:?}");
        }
    }

    #[test]
    fn names_fit_however_long_they_were() {
        let long = format!("{}.xlsx", "ä".repeat(200));
        let name = UploadedName::of(&long);
        assert!(name.as_str().len() <= MAX_PART && name.as_str().ends_with("ä.xlsx"));
        let second = name.numbered(1000);
        assert!(second.as_str().len() <= MAX_PART, "{}", second.as_str());
        assert!(second.as_str().ends_with(" (1000).xlsx"));
        let dots = UploadedName::of(&format!("a.{}", "b".repeat(400)));
        assert_eq!(dots.as_str().len(), MAX_PART);
        assert!(FileName::from_bytes(dots.as_str()).is_ok());
    }

    #[test]
    fn a_second_file_of_a_name_gets_a_number() {
        let name = UploadedName::of("report.xlsx");
        assert_eq!(name.numbered(2).as_str(), "report (2).xlsx");
        assert_eq!(
            UploadedName::of("README").numbered(3).as_str(),
            "README (3)"
        );
    }
}
