//! Files of the workspace: reached only below one folder, never through a link, on threads that
//! have the workload's file-system ids, so that its own rights decide what can be opened.

mod get;
mod inputs;
mod list;
mod put;
mod threads;
mod workspace;

pub(crate) use get::get;
pub(crate) use inputs::Inputs;
pub(crate) use list::{FirstNames, Sight, list, walk};
pub(crate) use put::{SPOOL_PREFIX, put};
pub use threads::ThreadsError;
pub(crate) use threads::{FileThreads, Hiring};
pub(crate) use workspace::{Entry, Workspace, describe};

use glovebox_protocol::event::mebibytes;
use glovebox_protocol::file::FileName;
use glovebox_protocol::sign::BodyDigest;
use rustix::io::Errno;

use crate::error::ApiError;

/// Why something could not be done with a file of the workspace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("there is no `{0}` in the workspace")]
    NotFound(FileName),
    #[error("`{0}` is no regular file")]
    NotRegular(FileName),
    #[error("something above `{0}` is no folder")]
    NotAFolder(FileName),
    #[error("`{0}`, or a folder above it, is a link; links are not followed")]
    Link(FileName),
    #[error("the workspace has no room left for `{0}`")]
    DiskFull(FileName),
    #[error("`{name}` is {} by its own account, over the limit of {}", mebibytes(*bytes), mebibytes(*limit))]
    TooLarge {
        name: FileName,
        bytes: u64,
        limit: u64,
    },
    #[error("`{0}` cannot be opened with the rights of the sandbox's programs")]
    Denied(FileName),
    #[error("{doing} `{name}`")]
    Failed {
        doing: &'static str,
        name: FileName,
        #[source]
        cause: Errno,
    },
    #[error("the threads for files have ended")]
    ThreadsEnded,
}

impl FileError {
    /// What an error of the operating system means for one file.
    fn from_os(doing: &'static str, name: &FileName, cause: Errno) -> Self {
        let name = name.clone();
        match cause {
            Errno::NOENT | Errno::NOTDIR => Self::NotFound(name),
            // What openat2 answers with when a link stands in the way.
            Errno::LOOP | Errno::XDEV => Self::Link(name),
            Errno::NOSPC | Errno::DQUOT => Self::DiskFull(name),
            Errno::ACCESS | Errno::PERM => Self::Denied(name),
            // A FIFO nobody reads from, a socket, a folder where a file was meant.
            Errno::NXIO | Errno::ISDIR | Errno::NODEV => Self::NotRegular(name),
            cause => Self::Failed { doing, name, cause },
        }
    }
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        match &error {
            FileError::NotFound(_) => Self::not_found(error.to_string()),
            FileError::NotRegular(_)
            | FileError::NotAFolder(_)
            | FileError::Link(_)
            | FileError::TooLarge { .. }
            | FileError::Denied(_) => Self::conflict(error.to_string()),
            FileError::DiskFull(_) => Self::disk_full(error.to_string()),
            FileError::Failed { .. } | FileError::ThreadsEnded => {
                Self::internal("working on a file", &error)
            }
        }
    }
}

/// The digest that a finished hash gives.
pub(crate) fn digest(hash: ring::digest::Context) -> BodyDigest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    BodyDigest::from_bytes(bytes)
}
