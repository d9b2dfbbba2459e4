//! Putting descriptors where a program expects them, and closing the rest.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};

use rustix::io::fcntl_dupfd_cloexec;

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
    close_range(first, None, 0)
}

/// Where descriptors lie that are kept for long, out of the way of [`keep_only`].
const OUT_OF_THE_WAY: RawFd = 1024;

/// Moves a descriptor that is kept for long up to the higher numbers. Where this process may not
/// have such numbers it stays where it is, which costs time and nothing else.
pub(crate) fn put_out_of_the_way(fd: OwnedFd) -> OwnedFd {
    fcntl_dupfd_cloexec(fd.as_fd(), OUT_OF_THE_WAY).unwrap_or(fd)
}

/// Gives this process a table of descriptors of its own, with the standard ones and `wanted` and
/// nothing else: for the child of a clone with `CLONE_FILES`, as the first thing that it does.
///
/// What lies above all that is wanted is never copied, so that a process which holds thousands of
/// descriptors up there clones as fast as one that holds a few.
///
/// # Errors
/// What `close_range` says. Where it is the first call that fails, the table is still the parent's,
/// and nothing is closed in it; the caller cannot tell, and closes nothing either.
pub(crate) fn keep_only(wanted: &mut [RawFd]) -> io::Result<()> {
    wanted.sort_unstable();
    let last = wanted.last().copied().unwrap_or(STANDARD).max(STANDARD);
    close_range(last + 1, None, libc::CLOSE_RANGE_UNSHARE)?;
    let mut first = STANDARD + 1;
    for &mut number in wanted {
        if first < number {
            close_range(first, Some(number - 1), 0)?;
        }
        first = first.max(number + 1);
    }
    Ok(())
}

/// The highest of the standard descriptors.
const STANDARD: RawFd = libc::STDERR_FILENO;

fn close_range(first: RawFd, last: Option<RawFd>, flags: libc::c_uint) -> io::Result<()> {
    let last = last.map_or(libc::c_long::from(u32::MAX), libc::c_long::from);
    // SAFETY: takes numbers only. Owners of closed descriptors would close them a second time,
    // which the callers rule out by not returning to them.
    checked(unsafe {
        libc::syscall(
            libc::SYS_close_range,
            libc::c_long::from(first),
            last,
            libc::c_long::from(flags),
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
