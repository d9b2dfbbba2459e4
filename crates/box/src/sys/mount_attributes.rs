//! Setting attributes of a mount and of every mount below it.

use std::ffi::CStr;
use std::io;

use super::checked;

/// Sets mount attributes (`MOUNT_ATTR_*`) on the mount at `path` and all mounts below; none is
/// taken away, so that what the host has locked stays.
///
/// # Errors
/// What `mount_setattr` says.
pub(crate) fn add_mount_attributes(path: &CStr, attributes: u64) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: `path` ends with a zero byte, `attributes` has the size that is given, and both
    // outlive the call.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            std::mem::size_of::<libc::mount_attr>(),
        )
    })
    .map(drop)
}
