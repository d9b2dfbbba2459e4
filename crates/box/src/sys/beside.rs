//! Processes that borrow this one's memory while it waits, and copies that they make of it.
//!
//! A process with many pages is expensive to copy, and the one who makes a copy in another
//! process namespace has to be in that namespace. So a helper is made that has this process's
//! memory itself, and not a copy of it; it goes where it has to, and makes the one copy there.

use std::arch::asm;
use std::cell::Cell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::checked;
use super::clone::CLONE_INTO_CGROUP;
use super::thread_state::ThreadState;

/// Bytes of a helper's stack. Helpers do a few calls and no more.
const STACK: usize = 128 * 1024;

/// Bytes below it that can be neither read nor written.
const GUARD: usize = 64 * 1024;

/// Bytes that are left free below what is live on a stack: more than the 128 that compiled code
/// may use there without saying so.
const MARGIN: usize = 1024;

/// The stack of a helper, for as long as this program runs.
#[derive(Debug)]
pub(crate) struct Stack(NonNull<libc::c_void>);

impl Stack {
    /// Makes one.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(crate) fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_STACK;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: no address is asked for, so no memory that is in use is touched.
        let region =
            unsafe { libc::mmap(std::ptr::null_mut(), GUARD + STACK, rights, flags, -1, 0) };
        if region == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the region has just been made, is larger than this, and nothing is in it.
        checked(unsafe { libc::mprotect(region, GUARD, libc::PROT_NONE) }.into())?;
        NonNull::new(region)
            .map(Self)
            .ok_or_else(|| io::ErrorKind::OutOfMemory.into())
    }

    fn usable(&self) -> u64 {
        self.0.as_ptr().addr() as u64 + GUARD as u64
    }
}

/// Whether any other thread or process uses this process's memory.
pub(crate) fn shares_memory() -> bool {
    // SAFETY: takes a number only. Where nobody shares the memory it does nothing, otherwise it
    // is refused.
    unsafe { libc::unshare(libc::CLONE_VM) != 0 }
}

/// What a helper has left.
#[derive(Debug)]
pub(crate) struct Left {
    /// The helper's process id. It has ended, and is still to be waited for.
    pub(crate) helper: Pid,
    /// The copy of this process, if one was made.
    pub(crate) copy: Option<OwnedFd>,
}

/// Runs `work` in a helper: a process of its own with this one's memory and descriptors. Comes
/// back when it has ended and nobody else uses the memory any more. What it has made is killed
/// after `patience`.
///
/// `work` may be cut short anywhere by a signal, and this process goes on with what it has done by
/// then. So it must neither allocate memory nor take locks nor panic. All signals that can be
/// blocked should be: a handler would run in it, with this process's memory.
///
/// # Errors
/// What `clone3` says.
pub(crate) fn beside<W: FnOnce(&Within<'_>) -> i32>(
    stack: &mut Stack,
    patience: Duration,
    work: W,
) -> io::Result<Left> {
    let within = Within {
        stack_end: stack_pointer(),
        helper: Cell::new(NONE),
        copy: Cell::new(NONE),
        waiting: PhantomData,
    };
    let mut work = Some(|| work(&within));
    let mut pidfd = NONE;
    let mut args = no_args();
    args.flags = (libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_PIDFD) as u64;
    args.pidfd = (&raw mut pidfd) as u64;
    args.stack = stack.usable();
    args.stack_size = STACK as u64;
    // SAFETY: the stack is borrowed for the time of this call, so nobody else uses it. This call
    // does not come back while anybody else uses the memory, and does nothing meanwhile but wait:
    // `work` runs as if it were called here, on another stack, and all that it has borrowed
    // outlives it.
    let helper = unsafe { start(&mut args, &mut work) }?;
    wait(pidfd, patience, &within);
    while shares_memory() {
        // The helper was killed, and has left its own.
        within.kill();
        pause();
    }
    owned(pidfd);
    owned(within.helper.get());
    Ok(Left {
        helper,
        copy: owned(within.copy.get()),
    })
}

/// Waits for the end of a helper. What it has made is killed when it takes longer.
fn wait(pidfd: RawFd, patience: Duration, within: &Within<'_>) {
    // SAFETY: the kernel has just made this descriptor, and it is closed after this.
    let pidfd = unsafe { BorrowedFd::borrow_raw(pidfd) };
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or_default();
        let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&timeout)) {
            Ok(0) => {
                within.kill();
                pause();
            }
            Err(Errno::INTR) => {}
            _ => return,
        }
    }
}

fn pause() {
    let moment = Timespec {
        tv_sec: 0,
        tv_nsec: 200_000,
    };
    // Being woken early only means looking again early.
    let _ = rustix::event::poll(&mut [], Some(&moment));
}

/// No descriptor.
const NONE: RawFd = -1;

fn owned(number: RawFd) -> Option<OwnedFd> {
    // SAFETY: the kernel has made this descriptor for us, and its number is given here once.
    (number != NONE).then(|| unsafe { OwnedFd::from_raw_fd(number) })
}

/// Given to what runs in a helper.
#[derive(Debug)]
pub(crate) struct Within<'a> {
    /// Where the live part of the waiting process's stack ends.
    stack_end: usize,
    /// The helper of the helper, once there is one. The kernel writes it before that one runs.
    helper: Cell<RawFd>,
    /// The copy, likewise.
    copy: Cell<RawFd>,
    waiting: PhantomData<&'a ()>,
}

impl Within<'_> {
    /// Runs `work` in a helper of this helper, which does nothing until it has ended. It begins in
    /// the control group `cgroup`, if one is given (version 2 only). Gives its process id; it is
    /// still to be waited for.
    ///
    /// # Errors
    /// What `clone3` says.
    pub(crate) fn beside<W: FnOnce() -> i32>(
        &self,
        stack: &mut Stack,
        cgroup: Option<BorrowedFd<'_>>,
        work: W,
    ) -> io::Result<Pid> {
        let mut args = no_args();
        // The kernel passes over one that is made with CLONE_VFORK when memory has run out in its
        // control group: with it, it would kill everybody with the same memory.
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::CLONE_PIDFD;
        args.flags = flags as u64;
        args.pidfd = self.helper.as_ptr() as u64;
        args.stack = stack.usable();
        args.stack_size = STACK as u64;
        if let Some(cgroup) = cgroup {
            args.flags |= CLONE_INTO_CGROUP;
            args.cgroup = u64::from(cgroup.as_raw_fd().cast_unsigned());
        }
        // SAFETY: the stack is borrowed for the time of the call, so nobody else uses it. With
        // CLONE_VFORK this helper stands still until the other has ended; and when this one is
        // killed meanwhile, the process that has made it waits for the other's end.
        unsafe { start(&mut args, &mut Some(work)) }
    }

    /// Copies the process that waits. The copy runs `work` on its own stack, below everything
    /// that was live there, and ends with the status that this returns. Its process id is that in
    /// the namespace in which it was made.
    ///
    /// The kernel tells the C library's record of the thread about the copy, as for its own
    /// `fork`. What is left to do in the copy does [`ThreadState::restore`].
    ///
    /// # Errors
    /// What `clone3` says.
    pub(crate) fn copy<W: FnOnce() -> i32>(
        &self,
        thread: &ThreadState,
        work: W,
    ) -> io::Result<Pid> {
        let mut args = no_args();
        let flags = libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID | libc::CLONE_PIDFD;
        args.flags = flags as u64;
        args.pidfd = self.copy.as_ptr() as u64;
        args.child_tid = thread.tid_address();
        let top = (self.stack_end - MARGIN) & !15;
        args.stack = (top - STACK) as u64;
        args.stack_size = STACK as u64;
        // SAFETY: without CLONE_VM the copy has all memory for itself. Its stack pointer is below
        // everything that is live on the stack of the process that waits; what lies below that
        // belongs to calls to which the copy never comes back. `work` and what it has borrowed
        // are in the copied memory too.
        unsafe { start(&mut args, &mut Some(work)) }
    }

    /// Kills what was made, as far as it is there.
    fn kill(&self) {
        for made in [&self.helper, &self.copy] {
            if made.get() != NONE {
                // SAFETY: whoever is in here uses the same table of descriptors, and nobody
                // closes these before the end.
                let made = unsafe { BorrowedFd::borrow_raw(made.get()) };
                // One that has ended is what we want.
                let _ = pidfd_send_signal(made, Signal::KILL);
            }
        }
    }
}

fn no_args() -> libc::clone_args {
    // SAFETY: all fields are integers, for which zero is a valid value.
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.exit_signal = libc::SIGCHLD as u64;
    args
}

/// Makes a process that runs `work` on the stack in `args`.
///
/// # Safety
/// The stack must be free for the new process. If it shares this one's memory, `work` and all that
/// it has borrowed must outlive it, and nobody else may use them meanwhile.
unsafe fn start<W: FnOnce() -> i32>(
    args: &mut libc::clone_args,
    work: &mut Option<W>,
) -> io::Result<Pid> {
    // SAFETY: `args` outlives the call; the new process finds `work` at the same address, whether
    // it shares the memory or has a copy. The rest is the caller's.
    let result = unsafe { clone_onto(args, run::<W>, std::ptr::from_mut(work).cast()) };
    if result < 0 {
        return Err(io::Error::from_raw_os_error(
            i32::try_from(-result).unwrap_or(libc::EINVAL),
        ));
    }
    i32::try_from(result)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or_else(|| io::Error::other("clone3 gave a process id that is none"))
}

/// The first function of a new process.
extern "C" fn run<W: FnOnce() -> i32>(work: *mut libc::c_void) -> ! {
    // SAFETY: `start` gives the address of an `Option<W>` that nobody else uses.
    let work = unsafe { (*work.cast::<Option<W>>()).take() };
    let status = work.map_or(libc::EXIT_FAILURE, |work| {
        catch_unwind(AssertUnwindSafe(work)).unwrap_or(libc::EXIT_FAILURE)
    });
    // SAFETY: ends the process at once; nothing of the other's may be dropped or flushed here.
    unsafe { libc::_exit(status) }
}

type Entry = extern "C" fn(*mut libc::c_void) -> !;

/// `clone3`, with a first function for the new process: on an empty stack it cannot come back from
/// the call as the old one does. Gives the new process's id, or a negative error number.
///
/// # Safety
/// As for [`start`].
#[cfg(target_arch = "x86_64")]
unsafe fn clone_onto(
    args: &mut libc::clone_args,
    entry: Entry,
    argument: *mut libc::c_void,
) -> libc::c_long {
    let result;
    // SAFETY: the call changes rax, rcx and r11 only. In the new process nothing behind it is
    // executed but the call of `entry`, which never returns and for which the stack is aligned.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") std::ptr::from_mut(args),
            in("rsi") std::mem::size_of::<libc::clone_args>(),
            in("r12") argument,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// The same for this processor.
///
/// # Safety
/// As for [`start`].
#[cfg(target_arch = "aarch64")]
unsafe fn clone_onto(
    args: &mut libc::clone_args,
    entry: Entry,
    argument: *mut libc::c_void,
) -> libc::c_long {
    let result;
    // SAFETY: the call changes x0 only. In the new process nothing behind it is executed but the
    // call of `entry`, which never returns and for which the stack is aligned.
    unsafe {
        asm!(
            "svc #0",
            "cbnz x0, 2f",
            "mov x29, xzr",
            "mov x0, x9",
            "blr x10",
            "brk #1",
            "2:",
            in("x8") libc::SYS_clone3,
            inlateout("x0") std::ptr::from_mut(args) => result,
            in("x1") std::mem::size_of::<libc::clone_args>(),
            in("x9") argument,
            in("x10") entry,
        );
    }
    result
}

/// Where the live part of this thread's stack ends, for everything that calls this.
#[inline(always)]
fn stack_pointer() -> usize {
    let pointer;
    // SAFETY: reads a register.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags));
        #[cfg(target_arch = "aarch64")]
        asm!("mov {}, sp", out(reg) pointer, options(nomem, nostack, preserves_flags));
    }
    pointer
}
