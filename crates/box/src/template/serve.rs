//! A template at work: takes orders one after the other, until its line is closed.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use super::fork::Forge;
use super::memory::gather_into_huge_pages;
use super::order::{Answer, Order, Received, receive, send};

/// The Python that this runs in, which has one thread.
pub(crate) trait Interpreter {
    /// Gets ready to be copied.
    fn before_fork(&self);
    /// Goes on after that in the original.
    fn after_fork_here(&self);
    /// Goes on after that in a copy.
    fn after_fork_in_copy(&self);
    /// Runs a kernel and ends the process.
    fn kernel(&self, start: KernelStart) -> i32;
}

/// How a kernel begins in a copy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KernelStart {
    /// The descriptor of its wire.
    pub(crate) wire: i32,
    /// The threads that libraries may start.
    pub(crate) threads: i32,
    /// Whether generators of random numbers begin anew.
    pub(crate) reseed: bool,
    /// Whether nobody waits for it yet.
    pub(crate) in_advance: bool,
}

/// Why a template cannot go on. The launcher has been told.
#[derive(Debug)]
pub(crate) struct Failed;

/// Takes orders until the launcher closes the line.
///
/// # Errors
/// When the template cannot go on.
pub(crate) fn serve(line: BorrowedFd<'_>, python: &impl Interpreter) -> Result<(), Failed> {
    let failed = |error: &dyn std::fmt::Display| {
        failed(line, &error.to_string());
        Failed
    };
    // Whoever has this id has all rights in the boxes of the pod, and other templates have it
    // too. Copies, and the helpers that make them inside a box, begin with the same.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| failed(&error))?;
    let mut forge = Forge::new().map_err(|error| failed(&error))?;
    gather_into_huge_pages();
    send(line, &Answer::Ready, &[]).map_err(|error| failed(&error))?;
    loop {
        let Received {
            message: order,
            descriptors,
        } = match receive::<Order>(line, RecvFlags::empty()) {
            Ok(Some(received)) => received,
            Ok(None) => return Ok(()),
            Err(error) if Errno::from_io_error(&error) == Some(Errno::INTR) => continue,
            Err(error) => return Err(failed(&format!("an order cannot be read: {error}"))),
        };
        let id = order.id;
        let answer = match forge.copy_into_box(&order, descriptors, python) {
            Ok(pid) => Answer::Forked {
                id,
                pid: pid.as_raw_nonzero().get(),
            },
            Err(refusal) if refusal.is_lasting => return Err(failed(&refusal.cause)),
            Err(refusal) => Answer::Refused {
                id,
                cause: refusal.cause,
            },
        };
        send(line, &answer, &[]).map_err(|error| failed(&error))?;
    }
}

/// Tells the launcher that this template cannot go on.
pub(crate) fn failed(line: BorrowedFd<'_>, cause: &str) {
    let answer = Answer::Failed {
        cause: cause.chars().take(2000).collect(),
        fix: None,
    };
    // If the launcher is gone, there is nobody to tell.
    let _ = send(line, &answer, &[]);
}
