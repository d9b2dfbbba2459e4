//! Gathering memory into huge pages: of those, a copy of a process takes one entry in a page table
//! instead of five hundred.

use std::io;

use super::checked;

/// Bytes of a huge page, on the processors that we know.
pub(crate) const HUGE_PAGE: usize = 2 * 1024 * 1024;

/// `MADV_COLLAPSE`, since Linux 6.1.
const COLLAPSE: libc::c_int = 25;

/// Gathers what lies in the huge page at `address` into one.
///
/// # Errors
/// What `madvise` says: memory that is partly unused cannot be gathered, and older kernels do not
/// know it.
pub(crate) fn gather(address: usize) -> io::Result<()> {
    // SAFETY: this moves memory that is in use and leaves addresses and contents as they are; the
    // address is not read through.
    checked(unsafe { libc::madvise(address as *mut libc::c_void, HUGE_PAGE, COLLAPSE) }.into())
        .map(drop)
}
