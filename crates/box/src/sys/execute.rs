//! Becoming another program.

use std::ffi::{CStr, CString};
use std::io;

/// Replaces this program by the one at `path`. Comes back only when that fails.
///
/// `arguments` begins with the program's own name.
pub(crate) fn execute(path: &CStr, arguments: &[CString], environment: &[CString]) -> io::Error {
    let arguments = null_ended(arguments);
    let environment = null_ended(environment);
    // SAFETY: both lists end with a null pointer and point to strings that end with a zero byte
    // and outlive the call.
    unsafe { libc::execve(path.as_ptr(), arguments.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

fn null_ended(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings
        .iter()
        .map(|string| string.as_ptr())
        .chain(std::iter::once(std::ptr::null()))
        .collect()
}
