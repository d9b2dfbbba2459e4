//! Files that one process at a time holds: for as long as it lives, and no longer.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The lock of a file, which is made where it is not there, unless another process has it.
///
/// It belongs to the open file and not to the process (`flock`): the system gives it back when the
/// last descriptor of it is closed, however the process ends, and programs that are started do not
/// inherit it.
pub(crate) fn take(path: &Path) -> std::io::Result<Option<File>> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
