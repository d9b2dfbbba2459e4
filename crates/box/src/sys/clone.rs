//! Making a process in namespaces of its own.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::process::Pid;

use super::checked;

/// Proof that this process has one thread. A child that is cloned from a process with more may
/// find locks held by threads that it does not have.
///
/// Not `Send`: whoever holds it is the one thread.
#[derive(Debug)]
pub(crate) struct SingleThread(PhantomData<*const ()>);

impl SingleThread {
    /// Counts the threads.
    ///
    /// # Errors
    /// When there is more than one, or they cannot be counted.
    pub(crate) fn verify() -> io::Result<Self> {
        let threads = fs_err::read_dir("/proc/self/task")?.count();
        if threads == 1 {
            Ok(Self(PhantomData))
        } else {
            Err(io::Error::other(format!(
                "there are {threads} threads where one is needed"
            )))
        }
    }
}

/// A process that was cloned.
#[derive(Debug)]
pub(crate) struct Cloned {
    /// Its id as this process sees it.
    pub(crate) pid: Pid,
    /// A descriptor that stands for it whatever happens to the id.
    pub(crate) pidfd: OwnedFd,
}

/// Clones this process with the `CLONE_NEW*` `flags` and runs `child` in the copy, which ends
/// with the status that `child` returns and never comes back here. With `cgroup`, the child
/// begins in that control group (version 2 only).
///
/// With `CLONE_FILES` both have one table of descriptors until the child calls
/// [`super::descriptors::keep_only`]: until then, nothing that it needs may be closed here, and
/// the child may close nothing at all, not by a value that is dropped either.
///
/// # Errors
/// What `clone3` says.
pub(crate) fn clone_process(
    _one: &SingleThread,
    flags: i32,
    cgroup: Option<BorrowedFd<'_>>,
    child: impl FnOnce() -> i32,
) -> io::Result<Cloned> {
    let mut pidfd: libc::c_int = -1;
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = u64::from(flags.cast_unsigned()) | libc::CLONE_PIDFD as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
    }
    // SAFETY: without CLONE_VM the child has a copy of all memory, and with one thread, which
    // `SingleThread` proves, no lock in it is held by a thread that is gone. With CLONE_FILES the
    // owners of descriptors are there twice and the descriptors once; the contract above is about
    // who may close them. `args` and `pidfd` outlive the call. No stack is given, so the child goes
    // on with its copy of this one.
    let pid = checked(unsafe {
        libc::syscall(
            libc::SYS_clone3,
            &raw mut args,
            std::mem::size_of::<libc::clone_args>(),
        )
    })?;
    if pid == 0 {
        let status = catch_unwind(AssertUnwindSafe(child)).unwrap_or(libc::EXIT_FAILURE);
        // SAFETY: ends the process at once; no destructor of the parent's values may run here.
        unsafe { libc::_exit(status) }
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows it.
    let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
    i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .map(|pid| Cloned { pid, pidfd })
        .ok_or_else(|| io::Error::other("clone3 gave a process id that is none"))
}

pub(super) const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Gives this process a view of control groups whose root is its own group.
///
/// # Errors
/// What `unshare` says.
pub(crate) fn enter_cgroup_namespace() -> io::Result<()> {
    // SAFETY: takes a number only, and changes nothing that another thread could rely on.
    checked(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }.into()).map(drop)
}
