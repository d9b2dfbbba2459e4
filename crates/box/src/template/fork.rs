//! One copy of the template in a box: how it gets in.
//!
//! The kernel lets a process join a user namespace only while it has one thread and one that
//! owns the namespace's rights, and makes processes in a process namespace only from a process
//! that has joined it. And whoever is to be the child of the box's first process has to be left
//! behind by one that was in the box's process namespace. So there are two helpers, which have the
//! template's memory while it waits:
//!
//! ```text
//! template ── first helper: joins control groups and namespaces
//!                └── second helper: is in the box's process namespace
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
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::move_into_link_name_space;

use super::copy::{Copy, LONGEST_ACCOUNT, SEALED};
use super::namespaces::JOINED;
use super::order::{GroupsWay, Order};
use super::serve::Interpreter;
use crate::policy::seccomp::Filters;
use crate::sys::beside::{Stack, Within, beside, shares_memory};
use crate::sys::signals::Mask;
use crate::sys::thread_state::ThreadState;

/// How long a copy may take to seal itself. It takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

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
        let pid = sent.map_err(|(doing, error)| Refusal::once(format!("{doing}: {error}")))?;
        match read_account(&account) {
            Ok(text) if text == SEALED => Ok(pid),
            Ok(text) if text.is_empty() => Err(Refusal::once("the copy ended while it was sealed")),
            Ok(text) => Err(Refusal::once(String::from_utf8_lossy(&text))),
            Err(error) => Err(Refusal::once(format!("waiting for the copy: {error}"))),
        }
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

    /// Joins everything but the view of control groups. Runs in a helper.
    fn join(&self) -> Result<(), (&'static str, Errno)> {
        for door in self.doors {
            rustix::io::write(door, b"0")
                .map_err(|error| ("joining the workload's control groups", error))?;
        }
        for (namespace, (_, kind)) in self.joined.iter().zip(JOINED) {
            move_into_link_name_space(namespace.as_fd(), Some(kind))
                .map_err(|error| ("joining the box's namespaces", error))?;
        }
        Ok(())
    }
}

/// Sends a copy in, which runs `copy`. Gives its process id in the box.
///
/// What runs in the helpers must not allocate, see [`beside`]: it calls the kernel, and leaves
/// what came of it in `outcome`.
fn send_in(
    stacks: &mut [Stack; 2],
    place: &Place<'_>,
    thread: &ThreadState,
    copy: impl FnOnce() -> i32,
) -> Result<Pid, (&'static str, io::Error)> {
    let [first, second] = stacks;
    let mut outcome = Err(("making the copy", Errno::INTR));
    let blocked = Mask::all().set();
    let helper = beside(first, place.folder, |within| {
        outcome = place
            .join()
            .and_then(|()| inside(within, second, thread, copy));
        0
    });
    let restored = Mask::none().set();
    let helper = helper.map_err(|error| ("making a helper for the copy", error))?;
    forget(helper);
    blocked
        .and(restored)
        .map_err(|error| ("blocking signals", error))?;
    outcome.map_err(|(doing, error)| (doing, error.into()))
}

/// In the first helper: makes the second one, which makes the copy.
fn inside(
    within: &Within<'_>,
    stack: &mut Stack,
    thread: &ThreadState,
    copy: impl FnOnce() -> i32,
) -> Result<Pid, (&'static str, Errno)> {
    let errno = |error: &io::Error| Errno::from_io_error(error).unwrap_or(Errno::IO);
    let mut made = Err(Errno::INTR);
    let helper = within.beside(stack, || {
        made = within.copy(thread, copy).map_err(|error| errno(&error));
        0
    });
    match helper {
        Ok(helper) => forget(helper),
        Err(error) => return Err(("making a helper in the box", errno(&error))),
    }
    made.map_err(|error| ("making the copy", error))
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
