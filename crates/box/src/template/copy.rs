//! The copy of a template, from its first moment in a box to the first line of Python: it becomes
//! what the agent is, and then takes the steps that every workload takes.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use rustix::thread::move_into_link_name_space;

use super::fork::FilterSet;
use super::namespaces::VIEW;
use super::order::Order;
use super::serve::{Interpreter, KernelStart};
use crate::create::privileges;
use crate::create::step::Failed;
use crate::fault::chain;
use crate::mutation::Mutation;
use crate::seal::{InStep as _, Seal, SealError};
use crate::sys::descriptors::{inherited, place};
use crate::sys::signals::Mask;
use crate::sys::thread_state::ThreadState;

/// What a copy says of its seal when nothing failed.
pub(super) const SEALED: &[u8] = b"sealed";

/// The longest account of what failed, in bytes.
pub(super) const LONGEST_ACCOUNT: usize = 512;

/// Where the wire lies, behind the standard descriptors, and behind it the pipe for the account,
/// which is closed before Python goes on.
const WIRE: RawFd = 3;
const ACCOUNT: RawFd = 4;

/// Descriptors are moved up here before they are put in place, so that none is in another's way.
const ASIDE: RawFd = 64;

/// What a copy needs to seal itself.
pub(super) struct Copy<'a> {
    pub(super) order: &'a Order,
    /// The box's view of control groups.
    pub(super) view: BorrowedFd<'a>,
    /// The kernel's end of the wire to the agent.
    pub(super) wire: BorrowedFd<'a>,
    /// Where it tells the template how sealing went.
    pub(super) account: BorrowedFd<'a>,
    pub(super) thread: &'a ThreadState,
    pub(super) filters: &'a FilterSet,
}

impl Copy<'_> {
    /// Runs the kernel, sealed. Comes back only when sealing failed, before any Python has run, or
    /// when the kernel does not end the process itself; with the status to end with.
    pub(super) fn run(&self, python: &impl Interpreter) -> i32 {
        let account = match self.enter() {
            Ok(account) => account,
            Err(error) => return refused(self.account, &error),
        };
        if let Err(error) = self.seal() {
            return refused(account.as_fd(), &error);
        }
        // If the template is gone, the kernel is as good.
        let _ = rustix::io::write(&account, SEALED);
        drop(account);
        python.after_fork_in_copy();
        let threads = i32::try_from(self.order.threads).unwrap_or(1);
        python.kernel(KernelStart {
            wire: WIRE,
            threads,
            reseed: !self.order.omissions.omits(Mutation::Reseed),
            in_advance: self.order.in_advance,
        })
    }

    /// Takes its place: the last namespace, what makes it a process of its own, and the
    /// descriptors that it keeps. Gives the pipe for the account.
    fn enter(&self) -> Result<OwnedFd, SealError> {
        move_into_link_name_space(self.view, Some(VIEW.1))
            .in_step("joining the box's view of control groups")?;
        self.thread
            .restore()
            .in_step("telling the kernel about the thread")?;
        self.arrange().in_step("putting descriptors in place")
    }

    /// The box's null streams, the wire and the pipe. What else is open stays where it is and is
    /// closed with the seal.
    fn arrange(&self) -> std::io::Result<OwnedFd> {
        let wire = fcntl_dupfd_cloexec(self.wire, ASIDE)?;
        let account = fcntl_dupfd_cloexec(self.account, ASIDE)?;
        for (number, how) in [
            (0, OFlags::RDONLY),
            (1, OFlags::WRONLY),
            (2, OFlags::WRONLY),
        ] {
            let null = rustix::fs::open("/dev/null", how | OFlags::CLOEXEC, Mode::empty())?;
            place(null.as_fd(), number)?;
        }
        for (fd, number) in [(wire, WIRE), (account, ACCOUNT)] {
            place(fd.as_fd(), number)?;
        }
        let account = inherited(ACCOUNT)?;
        fcntl_setfd(&account, FdFlags::CLOEXEC)?;
        Ok(account)
    }

    fn seal(&self) -> Result<(), SealError> {
        let Order {
            ids,
            limits,
            omissions,
            ..
        } = self.order;
        // As the box's first process before it became the agent, so that all that follows is as
        // for a workload that the agent has started.
        privileges::take_ids(ids.agent).in_step("taking the agent's ids")?;
        privileges::limit_resources(limits, omissions)
            .in_step("limiting what the agent may use")?;
        privileges::drop_capabilities(privileges::kept(*ids), omissions)
            .in_step("dropping capabilities")?;
        privileges::restrict(omissions, &self.filters.agent, |_| ()).map_err(in_seal)?;
        let [separate, shared] = &self.filters.workload;
        Seal {
            uid: ids.workload,
            gid: ids.workload,
            cwd: c"/workspace",
            open_files: limits.open_files,
            file_size: limits.file_size_bytes,
            close_from: ACCOUNT + 1,
            filters: if ids.are_separate() { separate } else { shared },
            omissions,
        }
        .apply()?;
        Mask::none().set().in_step("unblocking signals")?;
        // As the start of a program would leave it.
        set_dumpable_behavior(DumpableBehavior::Dumpable).in_step("becoming dumpable")
    }
}

fn in_seal(failed: Failed) -> SealError {
    SealError::Step {
        doing: failed.step.doing(),
        source: std::io::Error::from_raw_os_error(failed.errno),
    }
}

/// Tells the template what failed. The process ends without having run any Python.
fn refused(account: BorrowedFd<'_>, error: &SealError) -> i32 {
    let text = format!("sealing the copy: {}", chain(error));
    let bytes = text.as_bytes();
    // If the template is gone, there is nobody to tell.
    let _ = rustix::io::write(account, &bytes[..bytes.len().min(LONGEST_ACCOUNT)]);
    1
}
