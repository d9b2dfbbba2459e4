//! Locks on single bytes of a file, which end with the descriptor.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

// The structure has short fields for what the C library defines as integers.
const WRITE_LOCK: libc::c_short = 1;
const UNLOCK: libc::c_short = 2;
const FROM_START: libc::c_short = 0;
const _: () = assert!(
    WRITE_LOCK as libc::c_int == libc::F_WRLCK
        && UNLOCK as libc::c_int == libc::F_UNLCK
        && FROM_START as libc::c_int == libc::SEEK_SET
);

/// Locks byte `at` of a file for this open file description alone. Says `false` when another one
/// holds it. Closing the last descriptor of the description lets it go.
///
/// # Errors
/// What `fcntl` says otherwise.
pub(crate) fn lock_byte(file: BorrowedFd<'_>, at: u32) -> io::Result<bool> {
    change(file, at, WRITE_LOCK)
}

/// Lets byte `at` go.
///
/// # Errors
/// What `fcntl` says.
pub(crate) fn unlock_byte(file: BorrowedFd<'_>, at: u32) -> io::Result<()> {
    change(file, at, UNLOCK).map(drop)
}

fn change(file: BorrowedFd<'_>, at: u32, kind: libc::c_short) -> io::Result<bool> {
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = FROM_START;
    lock.l_start = libc::off_t::from(at);
    lock.l_len = 1;
    // SAFETY: `lock` outlives the call, which only reads it.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        _ => Err(error),
    }
}
