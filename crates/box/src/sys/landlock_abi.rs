//! Asking the kernel which Landlock it has.

use super::checked;

const LANDLOCK_CREATE_RULESET_VERSION: libc::c_long = 1;

/// The version of the kernel's Landlock interface; 0 where there is none.
pub fn landlock_abi() -> u32 {
    // SAFETY: with this flag the call reads no memory.
    let version = checked(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0,
            LANDLOCK_CREATE_RULESET_VERSION,
        )
    });
    version
        .ok()
        .and_then(|version| u32::try_from(version).ok())
        .unwrap_or(0)
}
