//! What the box's first process tells the launcher while it sets itself up: how long each step
//! took, and which one failed.
//!
//! Records of fixed size over a pipe that closes when the agent's program starts; nothing that
//! is read here was written by code of a workload.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::step::{Failed, Step};

const DONE: u8 = 1;
const FAILED: u8 = 2;
const RECORD: usize = 16;

/// The writing end, in the box.
pub(crate) struct Reporter {
    pipe: OwnedFd,
    last: Instant,
}

impl Reporter {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe,
            last: Instant::now(),
        }
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        self.last = Instant::now();
    }

    /// Says that a step is done.
    pub(crate) fn done(&mut self, step: Step) {
        let now = Instant::now();
        let micros = u64::try_from((now - self.last).as_micros()).unwrap_or(u64::MAX);
        self.last = now;
        self.write(DONE, step, 0, micros);
    }

    /// Says that a step has failed.
    pub(crate) fn failed(&self, failed: Failed) {
        self.write(FAILED, failed.step, failed.errno, 0);
    }

    /// The pipe, to be put where it survives until `exec`.
    pub(crate) fn pipe(&mut self) -> &mut OwnedFd {
        &mut self.pipe
    }

    fn write(&self, kind: u8, step: Step, errno: i32, micros: u64) {
        let mut record = [0; RECORD];
        record[0] = kind;
        record[1] = step.number();
        record[4..8].copy_from_slice(&errno.to_ne_bytes());
        record[8..].copy_from_slice(&micros.to_ne_bytes());
        // Fewer records than a pipe holds are ever written, so this never waits. If the launcher
        // is gone there is nobody to tell.
        let _ = rustix::io::write(&self.pipe, &record);
    }
}

/// How the set-up of a box went.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Microseconds of each step that was done.
    pub(crate) stages_us: Vec<(String, u64)>,
    /// The step that failed, if one did.
    pub(crate) failed: Option<Failed>,
    /// Whether the agent's program was started.
    pub(crate) executed: bool,
}

/// Reads the reports until the pipe closes, for at most `patience`.
///
/// # Errors
/// `ETIMEDOUT` when it stays open; whatever `read` and `poll` say.
pub(crate) fn collect(pipe: impl AsFd, patience: Duration) -> Result<Progress, Errno> {
    let start = Instant::now();
    let mut progress = Progress::default();
    let mut last_done = None;
    loop {
        let left = patience.saturating_sub(start.elapsed());
        let timeout = Timespec::try_from(left).map_err(|_| Errno::INVAL)?;
        let mut fds = [PollFd::new(&pipe, PollFlags::IN)];
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Err(Errno::TIMEDOUT),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        let mut record = [0; RECORD];
        match rustix::io::read(&pipe, &mut record) {
            Ok(0) => break,
            Ok(RECORD) => {}
            Ok(_) => return Err(Errno::PROTO),
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        let Some(step) = Step::from_number(record[1]) else {
            return Err(Errno::PROTO);
        };
        let [_, _, _, _, e0, e1, e2, e3, micros @ ..] = record;
        if record[0] == FAILED {
            progress.failed = Some(Failed {
                step,
                errno: i32::from_ne_bytes([e0, e1, e2, e3]),
            });
        } else {
            last_done = Some(step);
            let micros = u64::from_ne_bytes(micros);
            progress.stages_us.push((step.stage().into(), micros));
        }
    }
    // The last step before `exec` reports, and then the pipe closes without a failure.
    progress.executed = progress.failed.is_none() && last_done == Some(Step::Seccomp);
    Ok(progress)
}
