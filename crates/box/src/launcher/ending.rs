//! Taking a box away, step by step, without ever waiting: its processes, its control groups, its
//! socket, its ids.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use glovebox_protocol::ids::SandboxId;

use super::events::Watched;
use crate::control::{BoxEnd, Fault};
use crate::create::process::{kill, reap};
use crate::create::remains::{Remains, Stays};
use crate::ids::slots::Slots;
use crate::sys::clone::Cloned;

/// How long a killed box is given to end, and then again what is left of it to go away.
const PATIENCE: Duration = Duration::from_secs(10);

/// How soon it is tried again to take away what has stayed.
const SHORTEST_PAUSE: Duration = Duration::from_micros(500);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// What there is of a box.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// Its first process, as long as its end has not been taken.
    pub(super) process: Option<Watched<Cloned>>,
    pub(super) remains: Remains,
}

/// Whom to tell when a box is gone, and what.
#[derive(Debug)]
pub(super) enum Notice {
    /// It was asked to be removed.
    Removed {
        /// The request.
        id: u64,
    },
    /// It could not be made.
    NotMade {
        /// The request.
        id: u64,
        /// Why.
        fault: Fault,
    },
    /// It has ended without being asked to.
    Ended {
        /// Which one it was.
        sandbox: SandboxId,
        /// How.
        end: BoxEnd,
    },
}

/// A box that is being taken away.
#[derive(Debug)]
pub(super) struct Ending {
    body: Body,
    deadline: Instant,
    pause: Duration,
    pub(super) notices: Vec<Notice>,
}

/// How far it is.
#[derive(Debug)]
pub(super) enum Step {
    /// To be looked at again then, or when its process has ended.
    Wait(Instant),
    /// Nothing is left.
    Gone,
    /// Not all of it could be taken away.
    Stays(Fault),
}

impl Ending {
    /// Kills what runs.
    pub(super) fn begin(body: Body, notices: Vec<Notice>) -> Self {
        if let Some(process) = &body.process {
            // If it cannot be killed it does not end in time either, and that is told.
            let _ = kill(process.get());
        }
        Self {
            body,
            deadline: Instant::now() + PATIENCE,
            pause: SHORTEST_PAUSE,
            notices,
        }
    }

    /// Does what can be done now.
    pub(super) fn step(&mut self, slots: &mut Slots, run_folder: &OwnedFd) -> Step {
        if let Some(process) = &self.body.process {
            match reap(process.get()) {
                Ok(true) => {
                    self.body.process = None;
                    self.deadline = Instant::now() + PATIENCE;
                }
                Ok(false) if Instant::now() < self.deadline => return Step::Wait(self.deadline),
                Ok(false) => {
                    return Step::Stays(Fault::failed(
                        "ending the box's first process",
                        format!("it was killed {} s ago", PATIENCE.as_secs()),
                    ));
                }
                Err(fault) => {
                    self.body.process = None;
                    return Step::Stays(fault);
                }
            }
        }
        match self.body.remains.clear(slots, run_folder) {
            Ok(()) => Step::Gone,
            Err(Stays::ForNow(_)) if Instant::now() < self.deadline => {
                let next = Instant::now() + self.pause;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                Step::Wait(next)
            }
            Err(Stays::ForNow(fault) | Stays::ForGood(fault)) => Step::Stays(fault),
        }
    }

    /// What is there yet, and whom to tell.
    pub(super) fn into_parts(self) -> (Body, Vec<Notice>) {
        (self.body, self.notices)
    }
}
