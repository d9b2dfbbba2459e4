//! Reading one file to its end: its hash, and whether its content is what its name says.

use std::os::fd::OwnedFd;

use glovebox_protocol::artifact::LeftOutReason;
use glovebox_protocol::content::{Check, FileType};
use glovebox_protocol::file::FileName;
use glovebox_protocol::sign::BodyDigest;
use ring::digest::{Context, SHA256};
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

use crate::files::{FileError, Workspace, digest};

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;

/// What was found in a file.
pub(super) struct Found {
    pub(super) bytes: u64,
    pub(super) sha256: BodyDigest,
    /// Whether the content is what the name says.
    pub(super) agrees: bool,
}

/// Opens a file with one name.
pub(super) fn open(
    workspace: &Workspace,
    name: &FileName,
) -> Result<(OwnedFd, Stat), LeftOutReason> {
    let (file, stat) = workspace.open_file(name).map_err(|error| match error {
        FileError::Link(_) => LeftOutReason::Symlink,
        FileError::NotRegular(_) => LeftOutReason::Special,
        FileError::NotFound(_) => LeftOutReason::Changed,
        _ => LeftOutReason::Unreadable,
    })?;
    if stat.st_nlink == 1 {
        Ok((file, stat))
    } else {
        Err(LeftOutReason::HardLink)
    }
}

/// Reads a file, exactly as many bytes as it had when it was opened. Without a type only its hash
/// is of interest. `hash_all` goes on when the content is not what it should be already.
pub(super) fn scan(
    file: &OwnedFd,
    before: &Stat,
    file_type: Option<FileType>,
    hash_all: bool,
) -> Result<Found, LeftOutReason> {
    let size = u64::try_from(before.st_size).unwrap_or(0);

    let mut check = file_type.map(Check::new);
    let mut hash = Context::new(&SHA256);
    let mut buffer = vec![0; READ_BYTES];
    let mut bytes = 0;
    let mut agrees = true;
    while bytes < size && (agrees || hash_all) {
        let want = usize::try_from(size - bytes).map_or(READ_BYTES, |left| left.min(READ_BYTES));
        match rustix::io::read(file, &mut buffer[..want]) {
            Ok(0) => return Err(LeftOutReason::Changed),
            Ok(read) => {
                hash.update(&buffer[..read]);
                if let Some(check) = &mut check {
                    agrees = agrees && check.update(&buffer[..read]);
                }
                bytes += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(_) => return Err(LeftOutReason::Unreadable),
        }
    }
    let after = fstat(file).map_err(|_| LeftOutReason::Unreadable)?;
    // A program can set the time of the last write back, not that of the last change.
    let same = after.st_size == before.st_size
        && (after.st_ctime, after.st_ctime_nsec) == (before.st_ctime, before.st_ctime_nsec);
    if !same {
        return Err(LeftOutReason::Changed);
    }
    Ok(Found {
        bytes,
        sha256: digest(hash),
        agrees: agrees && check.is_none_or(Check::finish),
    })
}
