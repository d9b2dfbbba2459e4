//! System calls that no safe crate offers, each behind a safe function.
//!
//! The only place in the project with `unsafe` code. It decides nothing: what is called, in which
//! order and with what, stands in the modules that use it.
#![expect(
    unsafe_code,
    reason = "clone3, mount_setattr and the like have no safe wrapper in a crate we trust, and what Python loads has to be exported"
)]

#[cfg(feature = "template-library")]
pub(crate) mod beside;
pub(crate) mod clone;
pub(crate) mod descriptors;
pub(crate) mod execute;
#[cfg(feature = "template-library")]
pub(crate) mod huge_pages;
pub(crate) mod landlock_abi;
pub(crate) mod lock;
pub(crate) mod mount_attributes;
#[cfg(feature = "template-library")]
mod python;
pub(crate) mod signals;
#[cfg(feature = "template-library")]
pub(crate) mod thread_state;

use std::io;

/// Turns the result of a raw call into what it means.
fn checked(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
