//! Locks on single bytes of a file, which end with the descriptor.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Locks byte `at` of a file for this open file description alone. Says `false` when another one
/// holds it. Closing the last descriptor of the description lets it go.
///
/// # Errors
/// What `fcntl` says otherwise.
pub(crate) fn lock_byte(file: BorrowedFd<'_>, at: u32) -> io::Result<bool> {
    change(file, at, libc::F_WRLCK)
}

/// Lets byte `at` go.
///
/// # Errors
/// What `fcntl` says.
pub(crate) fn unlock_byte(file: BorrowedFd<'_>, at: u32) -> io::Result<()> {
    change(file, at, libc::F_UNLCK).map(drop)
}

fn change(file: BorrowedFd<'_>, at: u32, kind: libc::c_int) -> io::Result<bool> {
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
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
