//! One call: code goes in, output and messages come out in the order in which the code made
//! them, and at its end the kernel waits for the next, or is gone.

use std::convert::Infallible;
use std::sync::atomic::Ordering;
use std::time::Duration;

use glovebox_protocol::event::{EventBody, Note, Outcome};
use glovebox_protocol::frame::{FrameKind, HEADER};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::Execute;
use rustix::process::Signal;
use serde_json::json;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::facts::Facts;
use super::late::Late;
use super::live::{KernelEnd, Live, end_of};
use super::message::{FromKernel, Status, count};
use super::wire::WireFault;
use crate::lock::Locked;
use crate::process::{Asked, Child, KERNEL_GRACE, Pace, Pipe, Sink, Taken, Workload, pipe};

/// What a call works with.
pub(crate) struct Call<'a> {
    pub(crate) workload: &'a Workload,
    pub(crate) facts: &'a Locked<Facts>,
    pub(crate) sink: &'a Sink,
    pub(crate) request: &'a Execute,
    /// Told of every interrupt that is sent from outside.
    pub(crate) interrupted: &'a Notify,
    pub(crate) began: Instant,
}

/// An interrupt within this time of a call's start may have come before the kernel began.
const EARLY: Duration = Duration::from_millis(500);

/// Messages that are taken before others get their turn.
const MESSAGES_A_TURN: u32 = 64;

/// How the conversation with the kernel ended.
enum CallEnd {
    Reply { status: Status, count: u32 },
    Died(KernelEnd),
    Broken(WireFault),
}

/// The time limit came first; it had to be killed, or not.
type OverTime = Locked<Option<bool>>;

impl Call<'_> {
    /// Runs the code to its end, whatever that is.
    pub(crate) async fn run(&self, kernel: &mut Live, late: &mut Late) -> (Outcome, Vec<Note>) {
        let oom_kills_before = self.workload.oom_kills();
        kernel
            .oom_kills_before
            .store(oom_kills_before, Ordering::Relaxed);
        let over_time = OverTime::default();
        let child = kernel.child.clone();
        let mut last_error = None;
        let end = tokio::select! {
            biased;
            // First: a flood of messages would use up each turn before the clock is looked at.
            never = self.enforce(&child, &over_time) => match never {},
            end = self.converse(kernel, late, &mut last_error) => end,
        };
        let over_time = over_time.with(|over| *over);
        let asked = self.facts.with(|facts| facts.asked);
        let limit_ms = self.request.time_limit_ms;
        match end {
            CallEnd::Reply { status, count } => {
                let oom_kills = self.workload.oom_kills().saturating_sub(oom_kills_before);
                let note = (oom_kills > 0).then_some(Note::ChildOutOfMemory {
                    killed: oom_kills,
                    limit_bytes: self.workload.limits.memory_bytes,
                });
                let outcome = match over_time {
                    Some(killed) => Outcome::TimeLimit { limit_ms, killed },
                    None => after_reply(status, count, last_error, asked),
                };
                (outcome, note.into_iter().collect())
            }
            CallEnd::Died(end) => {
                let outcome = match (over_time, asked) {
                    (Some(true), _) => Outcome::TimeLimit {
                        limit_ms,
                        killed: true,
                    },
                    (None, Asked::Kill) => Outcome::Cancelled { killed: true },
                    _ => Outcome::KernelDied {
                        cause: Box::new(end.outcome),
                    },
                };
                (outcome, end.notes)
            }
            CallEnd::Broken(fault) => {
                let what = fault.to_string();
                // A kernel that was killed from here may have been in the middle of a word.
                let outcome = match (over_time, asked) {
                    (Some(true), _) => Outcome::TimeLimit {
                        limit_ms,
                        killed: true,
                    },
                    (None, Asked::Kill) => Outcome::Cancelled { killed: true },
                    _ => {
                        self.facts
                            .with(|facts| facts.end_reason = Some(format!("the kernel {what}")));
                        Outcome::KernelBroken { what }
                    }
                };
                self.workload.kill(&kernel.child);
                let end = end_of(&mut kernel.ended).await;
                (outcome, end.notes)
            }
        }
    }

    /// Interrupts the code when its time is over or nobody reads, and kills the kernel when that
    /// does not help. Runs beside the conversation, which may be waiting for a slow reader.
    async fn enforce(&self, child: &Child, over_time: &OverTime) -> Infallible {
        let is_over = self.until_unwanted(child).await;
        if is_over {
            over_time.with(|over| *over = Some(false));
        } else {
            self.facts
                .with(|facts| facts.asked = Asked::Interrupt.max(facts.asked));
        }
        self.sink.set_pace(Pace::Hurry);
        let kill_at = Instant::now() + KERNEL_GRACE;
        child.signal(Signal::INT);
        sleep_until(Instant::now() + EARLY).await;
        if self.began.elapsed() < EARLY * 2 {
            child.signal(Signal::INT);
        }
        sleep_until(kill_at).await;
        let limit_ms = self.request.time_limit_ms;
        self.facts.with(|facts| {
            facts.end_reason = Some(if is_over {
                format!("the kernel did not end a call within its {limit_ms} ms and was killed")
            } else {
                facts.asked = Asked::Kill;
                "the kernel did not end a call that nobody waited for and was killed".into()
            });
        });
        if is_over {
            over_time.with(|over| *over = Some(true));
        }
        self.workload.kill(child);
        std::future::pending().await
    }

    /// Returns when the call has to end: whether because its time is over. A kernel passes
    /// interrupts over between calls, so one that comes early in a call is sent again.
    async fn until_unwanted(&self, child: &Child) -> bool {
        let limit = Duration::from_millis(self.request.time_limit_ms);
        let deadline = self.began.checked_add(limit).unwrap_or_else(far_away);
        let mut again_at = None;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => return true,
                () = self.sink.closed() => return false,
                () = self.interrupted.notified() => {
                    let early = self.began.elapsed() < EARLY;
                    again_at = early.then(|| Instant::now() + EARLY);
                }
                () = sleep_until(again_at.unwrap_or(deadline)), if again_at.is_some() => {
                    child.signal(Signal::INT);
                    again_at = None;
                }
            }
        }
    }

    async fn converse(
        &self,
        kernel: &mut Live,
        late: &mut Late,
        last_error: &mut Option<String>,
    ) -> CallEnd {
        let Ok((mut stdout, stdout_write)) = pipe(FrameKind::Stdout) else {
            return CallEnd::Broken(WireFault::NoPipes);
        };
        let Ok((mut stderr, stderr_write)) = pipe(FrameKind::Stderr) else {
            return CallEnd::Broken(WireFault::NoPipes);
        };
        let document = json!({
            "type": "execute",
            "id": self.request.execution,
            "code": self.request.code,
            "silent": self.request.silent,
        });
        let mut ended = kernel.ended.clone();
        tokio::select! {
            biased;
            // A failure to send means that it is ending, which shows below.
            _ = kernel.wire.send_execute(&document, &stdout_write, &stderr_write) => {}
            _ = ended.wait_for(Option::is_some) => {}
        }
        drop((document, stdout_write, stderr_write));
        let (mut out_open, mut err_open) = (true, true);
        let mut turns = 0_u32;
        let end = loop {
            turns = turns.wrapping_add(1);
            if turns.is_multiple_of(MESSAGES_A_TURN) {
                // Messages that are here already are taken without a wait, and a flood of them
                // would leave nobody else their turn: neither the clock nor other requests.
                tokio::task::yield_now().await;
            }
            let message = tokio::select! {
                biased;
                message = kernel.wire.next() => message,
                () = stdout.readable(), if out_open => {
                    out_open = self.carry(&mut stdout).await;
                    continue;
                }
                () = stderr.readable(), if err_open => {
                    err_open = self.carry(&mut stderr).await;
                    continue;
                }
                end = end_of(&mut ended) => break self.last_words(kernel, late, end, last_error).await,
            };
            // What was written before the message goes out before it.
            self.drain(&mut stdout).await;
            self.drain(&mut stderr).await;
            match message {
                Ok(Some(message)) => {
                    if let Some(end) = self.take(kernel, late, message, last_error).await {
                        break end;
                    }
                }
                Ok(None) => break silence(&mut ended).await,
                Err(fault) => break CallEnd::Broken(fault),
            }
        };
        self.drain(&mut stdout).await;
        self.drain(&mut stderr).await;
        if matches!(end, CallEnd::Reply { .. }) {
            late.listen(self.sink.log().clone(), vec![stdout, stderr]);
        }
        end
    }

    /// What the kernel had said and nobody had read when it ended.
    async fn last_words(
        &self,
        kernel: &mut Live,
        late: &Late,
        end: KernelEnd,
        last_error: &mut Option<String>,
    ) -> CallEnd {
        let mut left = kernel.wire.bytes_here();
        while let Ok(Some(message)) = kernel.wire.next_here(&mut left) {
            if let Some(end) = self.take(kernel, late, message, last_error).await {
                return end;
            }
        }
        CallEnd::Died(end)
    }

    /// Deals with one message. Returns how the call ended, if that is what it says.
    async fn take(
        &self,
        kernel: &mut Live,
        late: &Late,
        message: FromKernel,
        last_error: &mut Option<String>,
    ) -> Option<CallEnd> {
        let seq = message.seq();
        let execution = message.execution();
        let own = execution == Some(self.request.execution);
        match message {
            FromKernel::Reply {
                status,
                execution_count,
                ending,
                ..
            } if own => {
                if ending {
                    // So that the next call finds a fresh kernel and not a dying one. One that
                    // does not go after all is found out by the next call.
                    let _ = timeout(KERNEL_GRACE, end_of(&mut kernel.ended)).await;
                }
                return Some(CallEnd::Reply {
                    status,
                    count: count(&execution_count),
                });
            }
            FromKernel::Ready { .. } | FromKernel::Reply { .. } => {
                return Some(CallEnd::Broken(WireFault::OutOfPlace));
            }
            message if own => self.show(message, last_error).await,
            message => show_late(late, execution, message),
        }
        if let Some(seq) = seq {
            kernel.wire.acknowledge(seq);
        }
        None
    }

    async fn show(&self, message: FromKernel, last_error: &mut Option<String>) {
        let Some(event) = message.into_event() else {
            return;
        };
        match &event {
            // How a call failed is told whatever was printed before.
            EventBody::Error { name, .. } if last_error.is_none() => {
                *last_error = Some(name.clone());
                self.sink.event(&event).await;
            }
            _ => self.sink.counted_event(&event).await,
        }
    }

    /// Carries what is in a pipe at this moment.
    async fn drain(&self, pipe: &mut Pipe) {
        let mut left = pipe.fill();
        while left > 0 {
            match pipe.take_at_once() {
                Taken::Chunk(chunk) => {
                    left = left.saturating_sub(chunk.len() - HEADER);
                    self.sink.output(pipe.kind, chunk).await;
                }
                Taken::Nothing | Taken::End => return,
            }
        }
    }

    /// Carries one chunk. Says whether more can come.
    async fn carry(&self, pipe: &mut Pipe) -> bool {
        match pipe.take() {
            Taken::Chunk(chunk) => {
                self.sink.output(pipe.kind, chunk).await;
                true
            }
            Taken::Nothing => true,
            Taken::End => false,
        }
    }
}

/// Waits for the end of a kernel that has closed its socket; one that lives on without is broken.
async fn silence(ended: &mut watch::Receiver<Option<KernelEnd>>) -> CallEnd {
    match timeout(KERNEL_GRACE, end_of(ended)).await {
        Ok(end) => CallEnd::Died(end),
        Err(_) => CallEnd::Broken(WireFault::Closed),
    }
}

/// Of what an earlier call shows only text is kept.
fn show_late(late: &Late, execution: Option<ExecutionId>, message: FromKernel) {
    let (FromKernel::Display { shown, .. } | FromKernel::Result { shown, .. }) = message else {
        return;
    };
    if let (Some(execution), Some(text)) = (execution, shown.text()) {
        late.show(execution, text);
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

fn far_away() -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + YEAR
}
