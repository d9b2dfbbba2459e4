//! Signals: back to what a fresh program expects, and as a descriptor.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd};

use super::checked;

const LAST_SIGNAL: libc::c_long = 64;
const SIGNAL_SET_BYTES: usize = 8;

/// Gives every signal its default action and unblocks all. Ignored and blocked signals would
/// outlive `exec`, and the Rust runtime ignores `SIGPIPE`.
///
/// # Errors
/// What the kernel says to the mask; signals whose action cannot be changed are passed over.
pub(crate) fn reset() -> io::Result<()> {
    // Zero stands for the default action, no flags and an empty mask. The C library's own
    // function would pass over the two signals that it keeps for itself.
    let default_action = [0_u64; 4];
    for signal in 1..=LAST_SIGNAL {
        // SAFETY: the structure has the size that the kernel reads on every 64-bit platform of
        // ours, and the default action runs no code of ours.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigaction,
                signal,
                default_action.as_ptr(),
                std::ptr::null_mut::<libc::c_void>(),
                SIGNAL_SET_BYTES,
            )
        };
    }
    Mask::none().set()
}

/// Which signals are blocked.
#[derive(Clone, Copy)]
pub(crate) struct Mask(libc::sigset_t);

impl Mask {
    /// None.
    pub(crate) fn none() -> Self {
        // SAFETY: an integer array, for which zero is a valid value.
        let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
        // SAFETY: writes `set` only.
        unsafe { libc::sigemptyset(&raw mut set) };
        Self(set)
    }

    /// All that can be.
    #[cfg(feature = "template-library")]
    pub(crate) fn all() -> Self {
        let Self(mut set) = Self::none();
        // SAFETY: writes `set` only.
        unsafe { libc::sigfillset(&raw mut set) };
        Self(set)
    }

    /// Blocks these and no others.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn set(&self) -> io::Result<()> {
        // SAFETY: reads the set only, which outlives the call.
        checked(
            unsafe {
                libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, std::ptr::null_mut())
            }
            .into(),
        )
        .map(drop)
    }
}

/// Blocks the signals that ask a program to end, and gives a descriptor that is readable once
/// one of them has come.
///
/// # Errors
/// What the kernel says.
pub(crate) fn ending_signals() -> io::Result<OwnedFd> {
    // SAFETY: `set` is filled before it is read, and outlives the calls.
    let fd = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
            libc::sigaddset(&raw mut set, signal);
        }
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()).into())?;
        checked(libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC).into())?
    };
    let fd = i32::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
