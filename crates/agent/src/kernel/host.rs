//! The kernel as the agent offers it: started, restarted, interrupted, asked to run code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::event::{Ended, EventBody, Outcome};
use glovebox_protocol::kernel::{Execute, KernelInfo, KernelState, StartKernel};
use glovebox_protocol::process::Cancel;
use rustix::process::Signal;
use tokio::sync::{Mutex, Notify, OwnedMutexGuard};
use tokio::time::{Instant, timeout};

use super::call::Call;
use super::late::Late;
use super::live::{KernelEnd, KernelStartError, Live, Starting, end_of};
use crate::error::ApiError;
use crate::lock::Locked;
use crate::process::{
    Asked, Child, Claim, KERNEL_GRACE, Registry, Sink, Workload, check_env, milliseconds_since,
};
use crate::reply::{self, Reply};

/// How long a start may take when nobody names a limit.
const START_LIMIT: Duration = Duration::from_secs(90);

/// Offers the kernel. There is at most one.
pub(crate) struct KernelHost {
    workload: Arc<Workload>,
    registry: Arc<Registry>,
    python: String,
    facts: Locked<Facts>,
    /// Held by whoever starts, ends or uses the kernel.
    seat: Arc<Mutex<Seat>>,
    interrupted: Notify,
}

#[derive(Default)]
struct Seat {
    kernel: Option<Live>,
    late: Late,
    /// The variables that the caller gave the last kernel it started.
    env: BTreeMap<String, String>,
}

/// What can be known and done of a kernel without waiting for whoever uses it.
pub(crate) struct Facts {
    state: KernelState,
    generation: u32,
    language: String,
    last_end: Option<String>,
    /// Whether the caller knows already that the last kernel is gone.
    told: bool,
    child: Option<Child>,
    /// What was asked of the present call.
    pub(crate) asked: Asked,
    /// Why the kernel was ended from here, where it was.
    pub(crate) end_reason: Option<String>,
    /// The last kernel whose end is in here.
    ended_generation: u32,
}

impl Facts {
    /// Takes down how a kernel ended, once.
    fn note_end(&mut self, generation: u32, end: &KernelEnd) {
        if self.ended_generation >= generation {
            return;
        }
        self.ended_generation = generation;
        let reason = self.end_reason.take();
        self.last_end = Some(reason.unwrap_or_else(|| format!("the kernel {}", end.outcome)));
        self.told = false;
        self.child = None;
        self.state = KernelState::Absent;
    }
}

impl KernelHost {
    pub(crate) fn new(workload: Arc<Workload>, registry: Arc<Registry>, python: String) -> Self {
        Self {
            workload,
            registry,
            python,
            facts: Locked::new(Facts {
                state: KernelState::Absent,
                generation: 0,
                language: String::new(),
                last_end: None,
                told: true,
                child: None,
                asked: Asked::Nothing,
                end_reason: None,
                ended_generation: 0,
            }),
            seat: Arc::default(),
            interrupted: Notify::new(),
        }
    }

    /// What is known of the kernel.
    pub(crate) fn info(&self) -> KernelInfo {
        self.facts.with(|facts| KernelInfo {
            state: facts.state,
            generation: facts.generation,
            language: facts.language.clone(),
            start: (facts.state != KernelState::Absent).then_some(Start::Fresh),
            last_end: facts.last_end.clone(),
        })
    }

    /// Starts a kernel unless there is one.
    pub(crate) async fn start(self: &Arc<Self>, request: StartKernel) -> Reply {
        check_env(&request.env).map_err(ApiError::invalid)?;
        let limit = match request.start_limit_ms {
            0 => START_LIMIT,
            ms => Duration::from_millis(ms),
        };
        self.start_with(Some(request.env), limit).await
    }

    /// Starts a kernel unless there is one, with these variables, or with those of the last one.
    async fn start_with(
        self: &Arc<Self>,
        env: Option<BTreeMap<String, String>>,
        limit: Duration,
    ) -> Reply {
        if self.facts.with(|facts| facts.state == KernelState::Busy) {
            return reply::ok(&self.info());
        }
        let mut seat = Arc::clone(&self.seat).lock_owned().await;
        let host = Arc::clone(self);
        // On a task of its own: a caller who goes away does not leave half a kernel.
        let started = tokio::spawn(async move { host.ensure(&mut seat, env, limit).await });
        answer(started.await)?;
        self.facts.with(|facts| facts.told = true);
        reply::ok(&self.info())
    }

    /// Ends the kernel, if there is one: politely when it is idle.
    pub(crate) async fn shut_down(&self) -> Reply {
        self.end_kernel("the kernel was shut down on request").await;
        reply::ok(&self.info())
    }

    /// Ends the kernel and starts a fresh one.
    pub(crate) async fn restart(self: &Arc<Self>) -> Reply {
        self.end_kernel("the kernel was restarted on request").await;
        self.start_with(None, START_LIMIT).await
    }

    /// Sends an interrupt to the kernel, or kills it.
    pub(crate) fn interrupt(&self, how: Cancel) -> Result<(), ApiError> {
        let child = self.facts.with(|facts| {
            let asked = match how {
                Cancel::Interrupt => Asked::Interrupt,
                Cancel::Kill => {
                    facts.end_reason = Some("the kernel was killed on request".into());
                    Asked::Kill
                }
            };
            facts.asked = asked.max(facts.asked);
            facts.child.clone()
        });
        let child = child.ok_or_else(|| ApiError::not_found("there is no kernel"))?;
        match how {
            Cancel::Interrupt => {
                child.signal(Signal::INT);
                self.interrupted.notify_waiters();
            }
            Cancel::Kill => self.workload.kill(&child),
        }
        Ok(())
    }

    /// Runs code and answers with the stream of what it does.
    pub(crate) fn execute(self: &Arc<Self>, request: Execute) -> Reply {
        if request.time_limit_ms == 0 {
            return Err(ApiError::invalid(
                "`time_limit_ms` is 0; it must be at least 1",
            ));
        }
        let seat = Arc::clone(&self.seat)
            .try_lock_owned()
            .map_err(|_| ApiError::conflict("the kernel is busy with another call"))?;
        let claim = self.registry.claim(request.execution)?;
        let (frames, response) = reply::frames();
        let sink = Sink::new(frames, Some(request.output_limit_bytes));
        self.facts.with(|facts| facts.asked = Asked::Nothing);
        tokio::spawn(Arc::clone(self).run(seat, claim, sink, request));
        Ok(response)
    }

    async fn run(
        self: Arc<Self>,
        mut seat: OwnedMutexGuard<Seat>,
        claim: Claim,
        sink: Sink,
        request: Execute,
    ) {
        let execution = request.execution;
        sink.event(&EventBody::ExecutionStarted { execution }).await;
        let began = Instant::now();
        let ready = self.prepare(&mut seat, &sink).await;
        let last = match ready {
            Ok(()) => {
                let began = Instant::now();
                let (outcome, notes) = self.call(&mut seat, &sink, &request).await;
                EventBody::ExecutionEnded(Ended {
                    execution,
                    outcome,
                    duration_ms: milliseconds_since(began),
                    notes,
                })
            }
            Err(KernelStartError::Ended { end, .. }) => EventBody::ExecutionEnded(Ended {
                execution,
                outcome: match self.facts.with(|facts| facts.asked) {
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
        // The caller may send the next call as soon as it has read the end of this one.
        drop(seat);
        drop(claim);
        sink.finish(&last).await;
    }

    /// Makes sure that there is a kernel, and tells what has to be told before its first output.
    async fn prepare(
        self: &Arc<Self>,
        seat: &mut Seat,
        sink: &Sink,
    ) -> Result<(), KernelStartError> {
        self.ensure(seat, None, START_LIMIT).await?;
        let replaced = self.facts.with(|facts| {
            let untold = !std::mem::replace(&mut facts.told, true);
            facts.last_end.clone().filter(|_| untold)
        });
        if let Some(reason) = replaced {
            sink.event(&EventBody::KernelReplaced { reason }).await;
        }
        for late in seat.late.collect() {
            sink.counted_event(&late).await;
        }
        Ok(())
    }

    async fn call(
        &self,
        seat: &mut Seat,
        sink: &Sink,
        request: &Execute,
    ) -> (Outcome, Vec<glovebox_protocol::event::Note>) {
        let asked = self.facts.with(|facts| {
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
                workload: &self.workload,
                facts: &self.facts,
                sink,
                request,
                interrupted: &self.interrupted,
                began: Instant::now(),
            };
            call.run(kernel, late).await
        } else {
            // Interrupted while the kernel was still starting.
            (
                Outcome::Cancelled {
                    killed: asked == Asked::Kill,
                },
                Vec::new(),
            )
        };
        if !outcome.is_success() {
            notes.extend(self.workload.disk_note().await);
        }
        let alive = kernel.is_alive();
        self.facts.with(|facts| {
            if alive && facts.state == KernelState::Busy {
                facts.state = KernelState::Idle;
            }
        });
        (outcome, notes)
    }

    /// Starts a kernel unless one is alive.
    async fn ensure(
        self: &Arc<Self>,
        seat: &mut Seat,
        env: Option<BTreeMap<String, String>>,
        limit: Duration,
    ) -> Result<(), KernelStartError> {
        if let Some(kernel) = &mut seat.kernel {
            if kernel.is_alive() {
                return Ok(());
            }
            let end = end_of(&mut kernel.ended).await;
            self.facts
                .with(|facts| facts.note_end(facts.generation, &end));
        }
        seat.kernel = None;
        if let Some(env) = env {
            seat.env = env;
        }
        self.facts.with(|facts| {
            facts.state = KernelState::Starting;
            facts.end_reason = None;
        });
        let result = match Starting::spawn(&self.workload, &self.python, &seat.env) {
            Ok(starting) => {
                let child = starting.child().clone();
                self.facts.with(|facts| facts.child = Some(child));
                starting.ready(&self.workload, limit).await
            }
            Err(error) => Err(error),
        };
        match result {
            Ok(live) => {
                let generation = self.facts.with(|facts| {
                    facts.state = KernelState::Idle;
                    facts.generation += 1;
                    facts.language.clone_from(&live.language);
                    facts.generation
                });
                let (host, mut ended) = (Arc::downgrade(self), live.ended.clone());
                tokio::spawn(async move {
                    let end = end_of(&mut ended).await;
                    if let Some(host) = host.upgrade() {
                        host.facts.with(|facts| facts.note_end(generation, &end));
                    }
                });
                seat.kernel = Some(live);
                Ok(())
            }
            Err(error) => {
                self.facts.with(|facts| {
                    facts.state = KernelState::Absent;
                    facts.child = None;
                    facts.last_end = Some(error.to_string());
                });
                Err(error)
            }
        }
    }

    async fn end_kernel(&self, reason: &str) {
        // A call that runs is ended; one that waits in line is not.
        let busy = self.facts.with(|facts| {
            let busy = facts.state == KernelState::Busy || facts.state == KernelState::Starting;
            busy.then(|| facts.child.clone()).flatten()
        });
        if let Some(child) = busy {
            self.facts.with(|facts| {
                facts.asked = Asked::Kill;
                facts.end_reason = Some(reason.into());
            });
            self.workload.kill(&child);
        }
        let mut seat = self.seat.lock().await;
        let Some(mut kernel) = seat.kernel.take() else {
            return;
        };
        if kernel.is_alive() {
            self.facts
                .with(|facts| facts.end_reason = Some(reason.into()));
            let polite = async {
                kernel.wire.send_shutdown().await.ok()?;
                Some(end_of(&mut kernel.ended).await)
            };
            if !matches!(timeout(KERNEL_GRACE, polite).await, Ok(Some(_))) {
                self.workload.kill(&kernel.child);
            }
        }
        let end = end_of(&mut kernel.ended).await;
        self.facts
            .with(|facts| facts.note_end(facts.generation, &end));
    }
}

impl From<KernelStartError> for ApiError {
    fn from(error: KernelStartError) -> Self {
        match error {
            KernelStartError::TooSlow { .. } => Self::start_timeout(error.to_string()),
            error => Self::internal("starting the kernel", &error),
        }
    }
}

fn answer(
    started: Result<Result<(), KernelStartError>, tokio::task::JoinError>,
) -> Result<(), ApiError> {
    match started {
        Ok(result) => Ok(result?),
        Err(error) => Err(ApiError::internal("starting the kernel", &error)),
    }
}
