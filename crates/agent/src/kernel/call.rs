//! One call: code goes in, output and messages come out in the order in which the code made
//! them, and at its end the kernel waits for the next, or is gone.

use std::sync::atomic::Ordering;

use glovebox_protocol::event::{Note, Outcome};
use glovebox_protocol::kernel::Execute;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::clock::{Alarm, OverTime};
use super::converse::{CallEnd, Conversation};
use super::facts::Facts;
use super::late::Late;
use super::live::{Live, end_of};
use super::message::Status;
use super::pipes::CallPipes;
use super::wire::WireFault;
use crate::lock::Locked;
use crate::process::{Asked, Sink, Workload};

/// What a call works with.
pub(super) struct Call<'a> {
    pub(super) workload: &'a Workload,
    pub(super) facts: &'a Locked<Facts>,
    pub(super) sink: &'a Sink,
    pub(super) request: &'a Execute,
    /// Told of every interrupt that is sent from outside.
    pub(super) interrupted: &'a Notify,
    pub(super) began: Instant,
}

impl Call<'_> {
    /// Runs the code to its end, whatever that is.
    pub(super) async fn run(
        &self,
        kernel: &mut Live,
        late: &mut Late,
        code: String,
        pipes: std::io::Result<CallPipes>,
    ) -> (Outcome, Vec<Note>) {
        let Ok(pipes) = pipes else {
            return self.broken(kernel, None, WireFault::NoPipes).await;
        };
        let oom_kills_before = self.workload.oom_kills();
        kernel
            .oom_kills_before
            .store(oom_kills_before, Ordering::Relaxed);
        let over_time = OverTime::default();
        let child = kernel.child.clone();
        let mut alarm = kernel.alarm.take().unwrap_or_else(Alarm::new);
        let conversation = Conversation::new(self, code, pipes);
        let end = tokio::select! {
            biased;
            // First: a flood of messages would use up each turn before the clock is looked at.
            never = self.enforce(&child, &mut alarm, &over_time) => match never {},
            end = conversation.run(kernel, late) => end,
        };
        kernel.alarm = Some(alarm);
        let over_time = over_time.with(|over| *over);
        match end {
            CallEnd::Reply(reply) => {
                let oom_kills = self.workload.oom_kills().saturating_sub(oom_kills_before);
                let note = (oom_kills > 0).then_some(Note::ChildOutOfMemory {
                    killed: oom_kills,
                    limit_bytes: self.workload.limits.memory_bytes,
                });
                let outcome = match over_time {
                    Some(killed) => self.time_limit(killed),
                    None => {
                        let asked = self.facts.with(|facts| facts.asked);
                        after_reply(reply.status, reply.count, reply.last_error, asked)
                    }
                };
                (outcome, note.into_iter().collect())
            }
            CallEnd::Died(end) => {
                let outcome = self.killed(over_time).unwrap_or(Outcome::KernelDied {
                    cause: Box::new(end.outcome),
                });
                (outcome, end.notes)
            }
            CallEnd::Broken(fault) => self.broken(kernel, over_time, fault).await,
        }
    }

    /// What became of a kernel that cannot be talked to any more: it is ended.
    async fn broken(
        &self,
        kernel: &mut Live,
        over_time: Option<bool>,
        fault: WireFault,
    ) -> (Outcome, Vec<Note>) {
        let what = fault.to_string();
        // A kernel that was killed from here may have been in the middle of a word.
        let outcome = self.killed(over_time).unwrap_or_else(|| {
            self.facts
                .with(|facts| facts.end_reason = Some(format!("the kernel {what}")));
            Outcome::KernelBroken { what }
        });
        self.workload.kill(&kernel.child);
        let end = end_of(&mut kernel.ended).await;
        (outcome, end.notes)
    }

    /// The outcome, if it is that the kernel was killed from here.
    fn killed(&self, over_time: Option<bool>) -> Option<Outcome> {
        match (over_time, self.facts.with(|facts| facts.asked)) {
            (Some(true), _) => Some(self.time_limit(true)),
            (None, Asked::Kill) => Some(Outcome::Cancelled { killed: true }),
            _ => None,
        }
    }

    const fn time_limit(&self, killed: bool) -> Outcome {
        Outcome::TimeLimit {
            limit_ms: self.request.time_limit_ms,
            killed,
        }
    }
}

fn after_reply(
    status: Status,
    execution_count: u32,
    last_error: Option<String>,
    asked: Asked,
) -> Outcome {
    match status {
        Status::Ok => Outcome::Succeeded { execution_count },
        Status::Error | Status::Aborted => {
            let name = last_error.unwrap_or_else(|| "Error".into());
            if asked == Asked::Interrupt && name == "KeyboardInterrupt" {
                Outcome::Cancelled { killed: false }
            } else {
                Outcome::Raised {
                    execution_count,
                    name,
                }
            }
        }
    }
}
