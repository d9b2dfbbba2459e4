//! One execute from its first event to its last.

use std::sync::Arc;

use glovebox_protocol::event::{Ended, EventBody, Note, Outcome};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::{Execute, KernelState};
use tokio::sync::{OwnedMutexGuard, mpsc};
use tokio::time::Instant;

use super::call::Call;
use super::facts::Facts;
use super::host::{KernelHost, START_LIMIT, Seat};
use super::live::Live;
use super::starting::KernelStartError;
use crate::error::ApiError;
use crate::logs::Logs;
use crate::process::{Asked, Claim, Sink, milliseconds_since};

/// How long a rehearsal may take, in milliseconds.
const REHEARSAL_LIMIT_MS: u64 = 10_000;

/// An execute on its way.
pub(super) struct Run {
    pub(super) host: Arc<KernelHost>,
    pub(super) sink: Sink,
    pub(super) request: Execute,
}

impl Run {
    /// Runs the code. `turn` and `claim` are given back before the caller hears of the end.
    pub(super) async fn finish(mut self, turn: OwnedMutexGuard<()>, claim: Claim) {
        let execution = self.request.execution;
        let began = Instant::now();
        let mut seat = match self.host.seat.try_lock() {
            Ok(seat) => seat,
            Err(_) => {
                self.sink.begin_answer();
                self.host.seat.lock().await
            }
        };
        let last = match self.prepare(&mut seat).await {
            Ok(()) => {
                let began = Instant::now();
                let code = std::mem::take(&mut self.request.code);
                let (outcome, notes) = self.call(&mut seat, code).await;
                EventBody::ExecutionEnded(Ended {
                    execution,
                    outcome,
                    duration_ms: milliseconds_since(began),
                    notes,
                })
            }
            Err(KernelStartError::Ended { end, .. }) => EventBody::ExecutionEnded(Ended {
                execution,
                outcome: match self.host.facts.with(|facts| facts.asked) {
                    Asked::Kill => Outcome::Cancelled { killed: true },
                    _ => Outcome::KernelDied {
                        cause: Box::new(end.outcome),
                    },
                },
                duration_ms: milliseconds_since(began),
                notes: end.notes,
            }),
            Err(error) => EventBody::Failed(*ApiError::from(error).body),
        };
        if let EventBody::ExecutionEnded(ended) = &last {
            claim.end(ended);
        }
        // The caller may send the next call as soon as it has read the end of this one.
        self.host.facts.with(Facts::end_call);
        drop(seat);
        drop(turn);
        drop(claim);
        self.sink.finish(&last).await;
        // On a task of its own, which gets its turn when the last of the answer is on its way.
        tokio::spawn(async move { self.host.pipes.prepare() });
    }

    /// Runs code that nobody asked for and nobody hears of, in a kernel that nobody has used. How it
    /// ended.
    pub(super) async fn rehearse(host: &Arc<KernelHost>, seat: &mut Seat, code: &str) -> Outcome {
        let execution = ExecutionId::new();
        let (frames, mut heard) = mpsc::channel(1);
        let run = Self {
            host: Arc::clone(host),
            sink: Sink::new(frames, None, Arc::new(Logs::new()).begin(execution)),
            request: Execute {
                execution,
                code: String::new(),
                time_limit_ms: REHEARSAL_LIMIT_MS,
                output_limit_bytes: 0,
                silent: true,
            },
        };
        let called = async {
            let (outcome, _) = run.call(seat, code.into()).await;
            // Ends what hears it.
            drop(run);
            outcome
        };
        let hearing = async { while heard.recv().await.is_some() {} };
        let (outcome, ()) = tokio::join!(called, hearing);
        host.pipes.prepare();
        outcome
    }

    /// Makes sure that there is a kernel, and tells what has to be told before its first output.
    async fn prepare(&self, seat: &mut Seat) -> Result<(), KernelStartError> {
        if !seat.kernel.as_ref().is_some_and(Live::is_alive) {
            self.sink.begin_answer();
        }
        self.host.ensure_for(seat, None, START_LIMIT).await?;
        if let Some(reason) = self.host.facts.with(Facts::tell_of_end) {
            self.sink.event(&EventBody::KernelReplaced { reason }).await;
        }
        for late in seat.late.collect() {
            self.sink.counted_event(&late).await;
        }
        Ok(())
    }

    async fn call(&self, seat: &mut Seat, code: String) -> (Outcome, Vec<Note>) {
        let host = &self.host;
        let asked = host.facts.with(|facts| {
            facts.state = KernelState::Busy;
            facts.asked
        });
        let Seat {
            kernel: Some(kernel),
            late,
            ..
        } = seat
        else {
            // `prepare` has put one there.
            return (Outcome::Cancelled { killed: true }, Vec::new());
        };
        let (outcome, mut notes) = if asked == Asked::Nothing {
            let call = Call {
                workload: &host.parts.workload,
                facts: &host.facts,
                sink: &self.sink,
                request: &self.request,
                interrupted: &host.interrupted,
                began: Instant::now(),
            };
            call.run(kernel, late, code, host.pipes.take()).await
        } else {
            // Interrupted while the kernel was still starting.
            let killed = asked == Asked::Kill;
            (Outcome::Cancelled { killed }, Vec::new())
        };
        if !outcome.is_success() {
            notes.extend(host.parts.workload.disk_note().await);
        }
        let alive = kernel.is_alive();
        host.facts.with(|facts| {
            if alive && facts.state == KernelState::Busy {
                facts.state = KernelState::Idle;
            }
        });
        (outcome, notes)
    }
}
