//! What a set-up tells of its progress.

use std::fmt;

/// One step of a set-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Waiting for another set-up of the same data folder.
    Wait,
    /// Looking for an interpreter.
    FindPython,
    /// Copying the interpreter and its standard library.
    CopyPython,
    /// Downloading and installing packages, counted by package.
    Packages,
    /// Copying tools, fonts and system files.
    CopySystem,
    /// Copying LibreOffice and poppler, for previews of documents.
    CopyOffice,
    /// Copying the shared libraries that all of it needs.
    Libraries,
    /// Compiling Python files.
    Compile,
    /// Importing every package and making the font cache, inside the tree.
    TryOut,
    /// Writing the manifest.
    Manifest,
    /// Comparing an existing tree with its manifest.
    Verify,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Wait => "waiting for another set-up to finish",
            Self::FindPython => "looking for Python",
            Self::CopyPython => "copying Python",
            Self::Packages => "installing packages",
            Self::CopySystem => "copying tools and fonts",
            Self::CopyOffice => "copying LibreOffice",
            Self::Libraries => "copying shared libraries",
            Self::Compile => "compiling",
            Self::TryOut => "trying it out",
            Self::Manifest => "writing the manifest",
            Self::Verify => "comparing the tree with its manifest",
        })
    }
}

/// Hears of a set-up's progress. Nothing is told when there is nothing to do.
pub trait Progress {
    /// A step begins, and with it the one before has ended.
    fn begins(&mut self, step: Step);

    /// So much of the present step is done.
    fn advances(&mut self, done: usize, total: usize);

    /// Something is worth telling that does not stop the set-up, such as an optional tool that
    /// this machine lacks.
    fn notes(&mut self, note: &str);
}

/// Hears and forgets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn begins(&mut self, _step: Step) {}
    fn advances(&mut self, _done: usize, _total: usize) {}
    fn notes(&mut self, _note: &str) {}
}
