//! Collecting what a program saved.

use serde::{Deserialize, Serialize};

use crate::file::FileName;
use crate::sign::BodyDigest;

/// Body of `POST /v1/artifacts/sweep`: which files of the workspace may leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// Allowed endings, lowercase, without the dot. The content has to agree.
    pub types: Vec<String>,
    /// Most files.
    pub max_files: u32,
    /// Most bytes, all files together.
    pub max_bytes: u64,
}

impl Sweep {
    /// The file types that may leave a sandbox when nobody narrows them.
    pub const DEFAULT_TYPES: [&'static str; 16] = [
        "pptx", "xlsx", "docx", "pdf", "csv", "tsv", "json", "txt", "md", "html", "png", "jpg",
        "jpeg", "gif", "webp", "svg",
    ];
}

impl Default for Sweep {
    fn default() -> Self {
        Self {
            types: Self::DEFAULT_TYPES.map(String::from).to_vec(),
            max_files: 25,
            max_bytes: 100 * 1024 * 1024,
        }
    }
}

/// Answer to a sweep. Names, sizes and hashes are those at the time of the sweep; the caller
/// fetches each file and compares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Files that may leave, sorted by name.
    pub artifacts: Vec<Artifact>,
    /// Files that stay, sorted by name, at most 1 000.
    pub left_out: Vec<LeftOut>,
    /// How many files stay and are not listed.
    pub more_left_out: u64,
}

/// A file that may leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Its path below the workspace.
    pub name: FileName,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256.
    pub sha256: BodyDigest,
    /// Its media type, by content and ending.
    pub media_type: String,
}

/// A file that stays, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its path below the workspace.
    pub name: FileName,
    /// Why.
    pub reason: LeftOutReason,
    /// The reason in words, with the limit that was met.
    pub message: String,
}

/// Why a file stays in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// Its ending is not among the allowed types.
    TypeNotAllowed,
    /// Its content is not what its ending says.
    ContentMismatch,
    /// It is a symbolic link.
    Symlink,
    /// It has more than one name.
    HardLink,
    /// It is a FIFO, a socket or a device.
    Special,
    /// It, or a folder above it, begins with a dot.
    Hidden,
    /// It was pushed in and did not change.
    UnchangedInput,
    /// More files than one collection takes.
    TooManyFiles,
    /// More bytes than one collection takes.
    TooManyBytes,
    /// It could not be read.
    Unreadable,
    /// It changed while it was read.
    Changed,
}
