//! One copy of the template in a box: how it gets in.
//!
//! The kernel lets a process join a user namespace only while it has one thread and one that
//! owns the namespace's rights, and makes processes in a process namespace only from a process
//! that has joined it. And whoever is to be the child of the box's first process has to be left
//! behind by one that was in the box's process namespace. So there are two helpers, which have the
//! template's memory while it waits:
//!
//! ```text
//! template ── first helper: joins the namespaces
//!                └── second helper: is in the box's process namespace, joins control groups
//!                       └── the copy: left to the box's agent when the helpers end
//! ```
//!
//! Only the copy costs a copy of the page tables, and it is made in the workload's control groups,
//! which pay for it.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, pidfd_send_signal, waitpid};
use rustix::thread::move_into_link_name_space;

use super::copy::{Copy, LONGEST_ACCOUNT, SEALED};
use super::namespaces::JOINED;
use super::order::{GroupsWay, Order};
use super::serve::Interpreter;
use crate::policy::seccomp::Filters;
use crate::sys::beside::{Stack, Within, beside, shares_memory};
use crate::sys::signals::Mask;
use crate::sys::thread_state::ThreadState;

/// How long the helpers may take, and how long a copy may take to seal itself: some milliseconds.
/// Code of the box that may signal them could stop them; then they are killed, and the template
/// goes on.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is made once for all copies.
pub(super) struct Forge {
    stacks: [Stack; 2],
    thread: ThreadState,
    filters: FilterSet,
}

/// The filters of system calls of everything in a box.
pub(super) struct FilterSet {
    pub(super) agent: Filters,
    /// Of a workload with an id of its own, and of one with the agent's.
    pub(super) workload: [Filters; 2],
}

/// There is no copy.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) cause: String,
    /// Whether the next order would not fare better.
    pub(super) is_lasting: bool,
}

impl Refusal {
    fn once(cause: impl Into<String>) -> Self {
        Self {
            cause: cause.into(),
            is_lasting: false,
        }
    }
}

impl Forge {
    /// Makes everything that can be made before there is an order.
    ///
    /// # Errors
    /// What failed, in words.
    pub(super) fn new() -> Result<Self, String> {
        let filters = |built: Result<Filters, _>| built.map_err(|error| format!("{error}"));
        Ok(Self {
            stacks: stacks().map_err(|error| format!("making room for helpers: {error}"))?,
            thread: ThreadState::of_this_thread().map_err(|error| {
                format!("looking at the thread (a kernel without CONFIG_CHECKPOINT_RESTORE cannot say): {error}")
            })?,
            filters: FilterSet {
                agent: filters(Filters::agent())?,
                workload: [
                    filters(Filters::workload(false))?,
                    filters(Filters::workload(true))?,
                ],
            },
        })
    }

    /// Copies this process into a box. Gives the copy's process id in there, once it is sealed.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn copy_into_box(
        &mut self,
        order: &Order,
        descriptors: Vec<OwnedFd>,
        python: &impl Interpreter,
    ) -> Result<Pid, Refusal> {
        let place = Place::of(order, &descriptors)
            .ok_or_else(|| Refusal::once("the descriptors of the order are not what it says"))?;
        // A second thread would be missing in the copy, with all that it holds. And the kernel
        // lets no process with two threads into a user namespace.
        if shares_memory() {
            return Err(Refusal {
                cause: "the template has more than one thread".into(),
                is_lasting: true,
            });
        }
        let (account, accounting) = pipe_with(PipeFlags::CLOEXEC)
            .map_err(|error| Refusal::once(format!("making a pipe to the copy: {error}")))?;
        let copy = Copy {
            order,
            view: place.view,
            wire: place.wire,
            account: accounting.as_fd(),
            thread: &self.thread,
            filters: &self.filters,
        };
        python.before_fork();
        let sent = send_in(&mut self.stacks, &place, &self.thread, || copy.run(python));
        python.after_fork_here();
        drop(accounting);
        drop(descriptors);
        let sent = sent.map_err(|(doing, error)| Refusal::once(format!("{doing}: {error}")))?;
        let why = match read_account(&account) {
            Ok(text) if text == SEALED => return Ok(sent.pid),
            Ok(text) if text.is_empty() => "the copy ended while it was sealed".into(),
            Ok(text) => String::from_utf8_lossy(&text).into_owned(),
            Err(error) => format!("waiting for the copy: {error}"),
        };
        // One that has ended is what we want.
        let _ = pidfd_send_signal(&sent.copy, Signal::KILL);
        Err(Refusal::once(why))
    }
}

fn stacks() -> io::Result<[Stack; 2]> {
    Ok([Stack::new()?, Stack::new()?])
}

/// Where a copy has to go, from the descriptors that came with the order.
struct Place<'a> {
    /// What the first helper joins: the user namespace first, because it gives the right to join
    /// the others.
    joined: &'a [OwnedFd],
    /// The view of control groups, which the copy joins itself: version 2 clones nobody into a
    /// group that is outside of his view.
    view: BorrowedFd<'a>,
    wire: BorrowedFd<'a>,
    doors: &'a [OwnedFd],
    folder: Option<BorrowedFd<'a>>,
}

impl<'a> Place<'a> {
    fn of(order: &Order, descriptors: &'a [OwnedFd]) -> Option<Self> {
        let (joined, rest) = descriptors.split_at_checked(JOINED.len())?;
        let [view, wire, ways @ ..] = rest else {
            return None;
        };
        if ways.len() != order.groups.descriptors() {
            return None;
        }
        let (doors, folder) = match order.groups {
            GroupsWay::Doors(_) => (ways, None),
            GroupsWay::Folder => (&[][..], ways.first().map(OwnedFd::as_fd)),
        };
        Some(Self {
            joined,
            view: view.as_fd(),
            wire: wire.as_fd(),
            doors,
            folder,
        })
    }

    /// Joins the namespaces. What is made from then on is in the box's process namespace.
    fn join_namespaces(&self) -> Result<(), Failure> {
        for (namespace, (_, kind)) in self.joined.iter().zip(JOINED) {
            move_into_link_name_space(namespace.as_fd(), Some(kind))
                .map_err(|error| ("joining the box's namespaces", error))?;
        }
        Ok(())
    }

    /// Goes through the doors to the workload's control groups, where there are doors.
    fn join_groups(&self) -> Result<(), Failure> {
        for door in self.doors {
            rustix::io::write(door, b"0")
                .map_err(|error| ("joining the workload's control groups", error))?;
        }
        Ok(())
    }
}

/// What was being done when a helper was killed before it could say what came of it.
const CUT_SHORT: &str = "waiting for the helpers that make the copy";

/// What was being done in a helper, and the kernel's number.
type Failure = (&'static str, Errno);

/// A copy that is in the box.
struct Sent {
    /// Its process id there.
    pid: Pid,
    copy: OwnedFd,
}

/// Sends a copy in, which runs `copy`.
///
/// What runs in the helpers must not allocate, see [`beside`]: it calls the kernel, and leaves
/// what came of it in `outcome`.
fn send_in(
    stacks: &mut [Stack; 2],
    place: &Place<'_>,
    thread: &ThreadState,
    copy: impl FnOnce() -> i32,
) -> Result<Sent, Failure> {
    let [first, second] = stacks;
    let mut outcome = Err((CUT_SHORT, Errno::INTR));
    let failed = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
    let blocked = Mask::all().set();
    let left = beside(first, PATIENCE, |within| {
        outcome = place
            .join_namespaces()
            .and_then(|()| inside(within, second, place, thread, copy));
        0
    });
    let restored = Mask::none().set();
    let left = left.map_err(|error| ("making a helper for the copy", failed(&error)))?;
    forget(left.helper);
    blocked
        .and(restored)
        .map_err(|error| ("blocking signals", failed(&error)))?;
    match (outcome, left.copy) {
        (Ok(pid), Some(copy)) => Ok(Sent { pid, copy }),
        (Ok(_), None) => Err((CUT_SHORT, Errno::INTR)),
        (Err(failure), copy) => {
            if let Some(copy) = copy {
                let _ = pidfd_send_signal(&copy, Signal::KILL);
            }
            Err(failure)
        }
    }
}

/// In the first helper: makes the second one, which makes the copy.
fn inside(
    within: &Within<'_>,
    stack: &mut Stack,
    place: &Place<'_>,
    thread: &ThreadState,
    copy: impl FnOnce() -> i32,
) -> Result<Pid, Failure> {
    let failed = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
    let mut made = Err((CUT_SHORT, Errno::INTR));
    let helper = within
        .beside(stack, place.folder, || {
            made = place.join_groups().and_then(|()| {
                let copied = within.copy(thread, copy);
                copied.map_err(|error| ("making the copy", failed(&error)))
            });
            0
        })
        .map_err(|error| ("making a helper in the box", failed(&error)))?;
    forget(helper);
    made
}

/// Lets the kernel forget a helper that has ended.
fn forget(helper: Pid) {
    while matches!(
        waitpid(Some(helper), WaitOptions::empty()),
        Err(Errno::INTR)
    ) {}
}

/// What the copy says of its seal. Nothing when it has ended without a word.
fn read_account(account: &OwnedFd) -> Result<Vec<u8>, Errno> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut fds = [PollFd::new(account, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    let mut text = vec![0; LONGEST_ACCOUNT];
    let count = rustix::io::read(account, &mut text)?;
    text.truncate(count);
    Ok(text)
}
