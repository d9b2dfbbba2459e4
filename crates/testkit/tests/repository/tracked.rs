//! The files that git tracks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use glovebox_testkit::repository;

/// A tracked file of text.
pub(crate) struct TextFile {
    /// Its path below the root of the repository.
    pub(crate) path: PathBuf,
    /// What is in it.
    pub(crate) text: String,
}

impl TextFile {
    /// Whether its name ends in one of these, without the dot.
    pub(crate) fn is_a(&self, endings: &[&str]) -> bool {
        self.path
            .extension()
            .and_then(|ending| ending.to_str())
            .is_some_and(|ending| endings.contains(&ending))
    }

    /// Whether it lies below this folder.
    pub(crate) fn is_below(&self, folder: impl AsRef<Path>) -> bool {
        self.path.starts_with(folder)
    }

    /// Its lines with their numbers, from 1.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(i, line)| (i + 1, line))
    }
}

/// All tracked files that are text and exist.
pub(crate) fn text_files() -> Result<Vec<TextFile>> {
    let root = repository();
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(&root)
        .output()
        .context("running git ls-files")?;
    ensure!(listed.status.success(), "git ls-files: {listed:?}");
    let names = String::from_utf8(listed.stdout).context("a tracked name is no UTF-8")?;
    Ok(names
        .split_terminator('\0')
        .filter_map(|name| {
            // Pictures and the like are no text; a deleted file is not there to be checked.
            let text = fs_err::read_to_string(root.join(name)).ok()?;
            let path = PathBuf::from(name);
            Some(TextFile { path, text })
        })
        .collect())
}
