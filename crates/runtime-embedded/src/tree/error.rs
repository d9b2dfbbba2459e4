//! How a set-up can fail, and what to do about each.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// How setting up or verifying a tree can fail.
///
/// The message says what was being done with what; [`SetupError::fix`] says what to do.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// No usable interpreter was found.
    #[error("finding a CPython from 3.11 to 3.13: {}", findings(.tried))]
    NoPython {
        /// What was tried and why it was not taken.
        tried: Vec<String>,
    },
    /// The interpreter has no pip and none could be found for it.
    #[error("installing the packages: {} has no pip", .python.display())]
    NoPip {
        /// The interpreter.
        python: PathBuf,
    },
    /// pip did not install the packages.
    #[error("installing the packages: pip ended with {status}\n{output}")]
    Packages {
        /// How pip ended.
        status: ExitStatus,
        /// The last lines that it printed.
        output: String,
    },
    /// Fonts that a sandbox is promised are not on this machine.
    #[error("copying fonts: this machine has no {}", .files.join(", no "))]
    NoFonts {
        /// Names of the missing files.
        files: Vec<String>,
        /// The Debian packages that hold them.
        packages: Vec<String>,
    },
    /// Tools that a sandbox is promised are not on this machine.
    #[error("copying tools: this machine has no usable {}", .tools.join(", no "))]
    NoTools {
        /// Names of the missing tools.
        tools: Vec<String>,
    },
    /// There is no time zone information on this machine.
    #[error("copying time zone information: there is no folder /usr/share/zoneinfo")]
    NoZoneinfo,
    /// A shared library was not found.
    #[error("copying shared libraries: {library}, which {} needs, was not found", .object.display())]
    NoLibrary {
        /// The library's name.
        library: String,
        /// What needs it, as a path inside the tree.
        object: PathBuf,
    },
    /// A program could not be started.
    #[error("{doing}: starting {program}")]
    Start {
        /// What was being done.
        doing: &'static str,
        /// Which program.
        program: String,
        /// Why it did not start.
        #[source]
        source: io::Error,
    },
    /// A program of the set-up failed.
    #[error("{doing}: ended with {status}\n{output}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// How the program ended.
        status: ExitStatus,
        /// The last lines that it printed.
        output: String,
    },
    /// A program of the set-up answered something else than agreed.
    #[error("{doing}: the answer is not as expected")]
    Answer {
        /// What was being done.
        doing: &'static str,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A file or folder could not be read or written.
    #[error("{doing}")]
    File {
        /// What was being done.
        doing: &'static str,
        /// What failed; the message names the path.
        #[source]
        source: io::Error,
    },
    /// A tree holds something that it must not.
    #[error("checking the new tree: {} is {what}", .path.display())]
    Unwanted {
        /// Where, as a path inside the tree.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// A tree is no longer what was built.
    #[error("verifying {}: {} {how}", .tree.display(), .path.display())]
    Changed {
        /// The tree.
        tree: PathBuf,
        /// The first path that differs, inside the tree.
        path: PathBuf,
        /// How it differs.
        how: &'static str,
    },
}

const MAKE_ROOM: &str = "Make room: a tree takes about 600 MB, and pip as much again for a moment.";

impl SetupError {
    /// What to do about it, as one or two sentences for a person.
    #[must_use]
    pub fn fix(&self) -> String {
        match self {
            Self::NoPython { .. } => "Install one, on Debian 12 and later or Ubuntu 24.04 and later with \
                `apt-get install python3 python3-venv`, elsewhere with pyenv or uv."
                .into(),
            Self::NoPip { .. } => "Install it, on Debian and Ubuntu with `apt-get install python3-pip`.".into(),
            Self::Packages { output, .. } if output.contains("DO NOT MATCH THE HASHES") => {
                "The package index served other files than the locked ones. Check where pip is told to \
                look (`pip config list`); nothing of it was kept."
                    .into()
            }
            Self::Packages { output, .. } if output.contains("No space left on device") => {
                MAKE_ROOM.into()
            }
            Self::Packages { .. } => "Packages come from the Python package index once, at set-up. Check the \
                network and pip's settings (`pip config list`; PIP_INDEX_URL, PIP_CERT and the proxy \
                variables are respected), then try again."
                .into(),
            Self::NoFonts { packages, .. } => {
                format!("On Debian and Ubuntu: `apt-get install {}`.", packages.join(" "))
            }
            Self::NoTools { .. } => "Install them, on Debian and Ubuntu with `apt-get install bash coreutils \
                grep sed mawk findutils tar gzip diffutils`."
                .into(),
            Self::NoZoneinfo => "On Debian and Ubuntu: `apt-get install tzdata`.".into(),
            Self::NoLibrary { .. } => "Install the Debian package that holds it (`apt-file search` finds it), \
                or choose another Python."
                .into(),
            Self::Start { program, .. } => format!("See that the program `{program}` is there and can be run."),
            Self::Failed { .. } => "`glovebox doctor` says what this machine lacks.".into(),
            Self::Answer { .. } | Self::Unwanted { .. } => {
                "This is a fault of Glovebox or of this Python; try another Python.".into()
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                MAKE_ROOM.into()
            }
            Self::File { .. } => "See that the data folder can be written by this user.".into(),
            Self::Changed { tree, .. } => format!(
                "Remove the folder {} and try again; it is then built anew.",
                tree.display()
            ),
        }
    }
}

/// Turns an error of a file operation into ours; made for `map_err`.
pub(crate) fn file(doing: &'static str) -> impl Fn(io::Error) -> SetupError {
    move |source| SetupError::File { doing, source }
}

fn findings(tried: &[String]) -> String {
    if tried.is_empty() {
        "there is no python3".into()
    } else {
        tried.join("; ")
    }
}
