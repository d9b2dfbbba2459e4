//! Putting descriptors where a program expects them, and closing the rest.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use super::checked;

/// Duplicates `fd` to exactly `number`, open across `exec`.
///
/// Whatever was open there is closed, also if something else in this process believes to own it:
/// only for a process that is about to become another program.
///
/// # Errors
/// What `dup3` says; `fd` must not be `number` itself.
pub(crate) fn place(fd: BorrowedFd<'_>, number: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::dup3(fd.as_raw_fd(), number, 0) }.into()).map(drop)
}

/// Closes every descriptor from `first` on, whoever owns it: only for a process that is about to
/// become another program.
///
/// # Errors
/// What `close_range` says.
pub(crate) fn close_from(first: RawFd) -> io::Result<()> {
    // SAFETY: takes numbers only. Owners of closed descriptors would close them a second time,
    // which the caller rules out by not returning to them.
    checked(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            libc::c_long::from(first),
            libc::c_long::from(u32::MAX),
            0,
        )
    })
    .map(drop)
}

/// Takes over a descriptor that this program was started with.
///
/// # Errors
/// When nothing is open there.
pub(crate) fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::fcntl(number, libc::F_GETFD) }.into())?;
    // SAFETY: it is open, came from outside, and the caller takes each number once.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
