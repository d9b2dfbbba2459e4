//! Control groups: finding them, and making, filling, emptying and removing one pair per box.
//!
//! All work is on files below paths that `layout` found, so that tests can point it at a tree
//! of their own. Which number goes into which file stands in `limits`.

mod clear;
pub(crate) mod files;
pub(crate) mod group;
pub mod layout;
pub(crate) mod limits;
pub(crate) mod pod;
pub(crate) mod template;

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::fault::chain;

/// How work on control groups can fail.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// A folder or file of the control group file system could not be used.
    #[error("{doing} {}", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// Processes were left that did not go away.
    #[error("processes are left in {}", path.display())]
    NotEmpty {
        /// Which group.
        path: PathBuf,
    },
    /// Something failed, and what it leaves could not be removed.
    #[error("{}; and then, {}", chain(first), chain(second))]
    LeftBehind {
        /// What failed.
        first: Box<CgroupError>,
        /// Why something is left.
        second: Box<CgroupError>,
    },
    /// There is no place for control groups of ours.
    #[error("{reason}")]
    NoPlace {
        /// Why.
        reason: String,
        /// What to do about it.
        fix: String,
    },
}

impl CgroupError {
    /// Whether it may go away by itself: the kernel lets go of a process a moment after it has
    /// been waited for.
    pub(crate) fn is_passing(&self) -> bool {
        match self {
            Self::NotEmpty { .. } => true,
            Self::File { source, .. } => Errno::from_io_error(source) == Some(Errno::BUSY),
            Self::LeftBehind { .. } | Self::NoPlace { .. } => false,
        }
    }
}

/// The error of one operation on one file.
pub(crate) fn on(
    doing: &'static str,
    path: &Path,
) -> impl FnOnce(std::io::Error) -> CgroupError + use<> {
    let path = path.to_owned();
    move |source| CgroupError::File {
        doing,
        path,
        source,
    }
}
