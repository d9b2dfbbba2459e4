//! What the box's first process tells the launcher while it sets itself up: how long each step
//! took, and which one failed.
//!
//! Records of fixed size over a pipe that closes when the agent's program starts; nothing that
//! is read here was written by code of a workload.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Instant;

use rustix::io::Errno;

use super::explain::explain;
use super::stages::micros;
use super::step::{Failed, Step};
use crate::control::Fault;

const DONE: u8 = 1;
const FAILED: u8 = 2;
const RECORD: usize = 16;

/// How many records are read at a time.
const AT_A_TIME: usize = 32;

/// The writing end, in the box.
pub(crate) struct Reporter {
    pipe: OwnedFd,
    last: Instant,
    records: Vec<u8>,
}

impl Reporter {
    pub(crate) fn new(pipe: OwnedFd) -> Self {
        Self {
            pipe,
            last: Instant::now(),
            records: Vec::new(),
        }
    }

    /// Begins to measure.
    pub(crate) fn begin(&mut self) {
        self.last = Instant::now();
    }

    /// Notes that a step is done.
    pub(crate) fn done(&mut self, step: Step) {
        let now = Instant::now();
        self.note(DONE, step, 0, micros(now - self.last));
        self.last = now;
    }

    /// Says that a step has failed.
    pub(crate) fn failed(&mut self, failed: Failed) {
        self.note(FAILED, failed.step, failed.errno, 0);
        self.send();
    }

    /// Says what was noted: all at once, because each time wakes the launcher up.
    pub(crate) fn send(&mut self) {
        // Less than a pipe holds is ever written, so this never waits. If the launcher is gone
        // there is nobody to tell.
        let _ = rustix::io::write(&self.pipe, &self.records);
        self.records.clear();
    }

    /// The pipe, to be put where it survives until `exec`.
    pub(crate) fn pipe(&mut self) -> &mut OwnedFd {
        &mut self.pipe
    }

    fn note(&mut self, kind: u8, step: Step, errno: i32, micros: u64) {
        self.records.extend([kind, step.number(), 0, 0]);
        self.records.extend(errno.to_ne_bytes());
        self.records.extend(micros.to_ne_bytes());
    }
}

/// How the set-up of a box goes.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Microseconds of each step that was done.
    stages_us: Vec<(String, u64)>,
    last: Option<Step>,
    failed: Option<Failed>,
    over: bool,
    /// Whether all mounts, namespaces and names of the box are in place.
    pub(crate) complete: bool,
}

impl Progress {
    /// Takes what has been reported, without waiting where the pipe does not wait.
    ///
    /// # Errors
    /// When it is no report; whatever `read` says.
    pub(crate) fn read(&mut self, pipe: impl AsFd) -> Result<(), Fault> {
        let failed = |error| Fault::failed("listening to how the box sets itself up", error);
        let mut records = [0; RECORD * AT_A_TIME];
        loop {
            let count = match rustix::io::read(&pipe, &mut records) {
                Ok(0) => {
                    self.over = true;
                    return Ok(());
                }
                Ok(count) => count,
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => continue,
                Err(error) => return Err(failed(error)),
            };
            let (records, rest) = records[..count].as_chunks::<RECORD>();
            if !rest.is_empty() {
                return Err(failed(Errno::PROTO));
            }
            for record in records {
                self.take(record).map_err(failed)?;
            }
        }
    }

    fn take(&mut self, record: &[u8; RECORD]) -> Result<(), Errno> {
        let [kind, step, _, _, e0, e1, e2, e3, micros @ ..] = *record;
        let step = Step::from_number(step).ok_or(Errno::PROTO)?;
        if kind == FAILED {
            self.failed = Some(Failed {
                step,
                errno: i32::from_ne_bytes([e0, e1, e2, e3]),
            });
            return Ok(());
        }
        self.last = Some(step);
        self.complete |= step == Step::Names;
        let micros = u64::from_ne_bytes(micros);
        self.stages_us.push((step.stage().into(), micros));
        Ok(())
    }

    /// The first process has ended: it says nothing more, also where a copy of its pipe is open for
    /// a moment in another one that is just being made.
    pub(crate) fn end(&mut self) {
        self.over = true;
    }

    /// Whether the first process has said anything yet.
    pub(crate) fn has_begun(&self) -> bool {
        self.last.is_some() || self.failed.is_some()
    }

    /// How it came out, once the pipe has closed.
    pub(crate) fn outcome(&mut self) -> Option<Result<Vec<(String, u64)>, Fault>> {
        if !self.over {
            return None;
        }
        Some(match (self.failed.take(), self.last) {
            (Some(failed), _) => Err(explain(failed)),
            // The last step before `exec` reports, and then the pipe closes without a failure.
            (None, Some(Step::Seccomp)) => Ok(std::mem::take(&mut self.stages_us)),
            _ => Err(Fault::failed(
                "waiting for the box to set itself up",
                "its first process ended without a word",
            )),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn pipe() -> (OwnedFd, Reporter) {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap();
        (read, Reporter::new(write))
    }

    #[test]
    fn steps_are_told_together_and_the_last_one_makes_it_a_success() {
        let (read, mut reporter) = pipe();
        let mut progress = Progress::default();
        reporter.done(Step::Root);
        progress.read(&read).unwrap();
        assert!(!progress.complete);
        reporter.done(Step::Names);
        reporter.send();
        progress.read(&read).unwrap();
        assert!(progress.complete);
        assert!(progress.outcome().is_none());
        reporter.done(Step::Seccomp);
        reporter.send();
        drop(reporter);
        progress.read(&read).unwrap();
        let stages = progress.outcome().unwrap().unwrap();
        let stages: Vec<_> = stages.iter().map(|(stage, _)| stage.as_str()).collect();
        assert_eq!(stages, ["root", "names", "seccomp"]);
    }

    #[test]
    fn what_was_said_counts_once_the_process_has_ended_though_its_pipe_is_open() {
        let (read, mut reporter) = pipe();
        let mut progress = Progress::default();
        reporter.failed(Failed {
            step: Step::Ids,
            errno: Errno::PERM.raw_os_error(),
        });
        progress.end();
        progress.read(&read).unwrap();
        let fault = progress.outcome().unwrap().unwrap_err();
        assert_eq!(fault.doing, Step::Ids.doing());
    }

    #[test]
    fn a_failed_step_is_named_and_silence_is_a_failure_too() {
        let (read, mut reporter) = pipe();
        reporter.done(Step::Root);
        reporter.failed(Failed {
            step: Step::Ids,
            errno: Errno::PERM.raw_os_error(),
        });
        drop(reporter);
        let mut progress = Progress::default();
        progress.read(&read).unwrap();
        let fault = progress.outcome().unwrap().unwrap_err();
        assert_eq!(fault.doing, Step::Ids.doing());
        let (read, reporter) = pipe();
        drop(reporter);
        let mut progress = Progress::default();
        progress.read(&read).unwrap();
        let fault = progress.outcome().unwrap().unwrap_err();
        assert!(fault.cause.contains("without a word"), "{fault}");
    }
}
