//! The kernel as the agent offers it: started, restarted, interrupted, asked to run code.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::event::EventBody;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::{Execute, KernelInfo, KernelState, StartKernel};
use glovebox_protocol::process::{Cancel, ExecutionState};
use rustix::process::Signal;
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use super::facts::Facts;
use super::late::Late;
use super::live::{Live, end_of};
use super::pipes::SparePipes;
use super::run::Run;
use super::starting::KernelStartError;
use super::supply::Supply;
use crate::activity::Activity;
use crate::error::ApiError;
use crate::lock::Locked;
use crate::process::{Asked, Child, KERNEL_GRACE, Registry, Sink, Workload, check_env};
use crate::reply::{self, Reply};
use crate::words::Words;

/// How long a start may take when nobody names a limit.
pub(super) const START_LIMIT: Duration = Duration::from_secs(90);

/// Offers the kernel. There is at most one.
pub(crate) struct KernelHost {
    pub(super) parts: Parts,
    pub(super) facts: Locked<Facts>,
    /// Held by the one call that runs, or waits until the seat is free.
    turn: Arc<Mutex<()>>,
    /// Held by whoever starts, ends or uses the kernel.
    pub(super) seat: Arc<Mutex<Seat>>,
    pub(super) interrupted: Notify,
    /// For the next call.
    pub(super) pipes: SparePipes,
}

/// What a host works with.
pub(crate) struct Parts {
    pub(crate) workload: Arc<Workload>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) python: String,
    /// Where kernels come from that are not started here.
    pub(crate) supply: Option<Arc<Supply>>,
    pub(crate) words: Words,
}

#[derive(Default)]
pub(super) struct Seat {
    pub(super) kernel: Option<Live>,
    /// Whether the kernel came up unasked, and nobody has asked for it since.
    pub(super) unasked: bool,
    pub(super) late: Late,
    /// The variables that the caller gave the last kernel it started.
    pub(super) env: BTreeMap<String, String>,
}

impl KernelHost {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            parts,
            facts: Locked::new(Facts::new()),
            turn: Arc::default(),
            seat: Arc::default(),
            interrupted: Notify::new(),
            pipes: SparePipes::default(),
        }
    }

    /// What is known of the kernel.
    pub(crate) fn info(&self) -> KernelInfo {
        self.facts.with(|facts| facts.info())
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
        let seat = timeout(limit, Arc::clone(&self.seat).lock_owned()).await;
        let mut seat = seat.map_err(|_| KernelStartError::too_slow(limit))?;
        let host = Arc::clone(self);
        // On a task of its own: a caller who goes away does not leave half a kernel.
        let started = tokio::spawn(async move { host.ensure_for(&mut seat, env, limit).await });
        match started.await {
            Ok(result) => result?,
            Err(error) => return Err(ApiError::internal("starting the kernel", &error)),
        }
        self.facts.with(Facts::tell_of_end);
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

    /// Sends an interrupt to the kernel, or kills it. A call that waits for its kernel to come is
    /// cancelled when it has come.
    pub(crate) fn interrupt(&self, how: Cancel) -> Result<(), ApiError> {
        let (child, coming) = self.facts.with(|facts| {
            facts.ask(how);
            (facts.child.clone(), facts.state == KernelState::Starting)
        });
        match child {
            Some(child) => self.signal(&child, how),
            None if coming => {}
            None => return Err(ApiError::not_found("there is no kernel")),
        }
        Ok(())
    }

    /// Interrupts one call, or kills the kernel that runs it; no other call. One that has not come
    /// yet is cancelled when it comes.
    pub(crate) fn cancel(&self, call: ExecutionId, how: Cancel) -> Result<(), ApiError> {
        let known = self.parts.registry.look_up(call);
        let has_ended = matches!(
            known,
            Ok(ExecutionState::Ended { .. } | ExecutionState::Failed)
        );
        // Under one lock with the beginning of a call: it comes before this, or after.
        let child = self.facts.with(|facts| {
            if facts.is_current(call) {
                facts.ask(how);
                return Ok(facts.child.clone());
            }
            if has_ended {
                return Err(ApiError::conflict(format!(
                    "the execution {call} has ended"
                )));
            }
            facts.ask_early(call, how);
            Ok(None)
        })?;
        if let Some(child) = child {
            self.signal(&child, how);
        }
        Ok(())
    }

    fn signal(&self, child: &Child, how: Cancel) {
        match how {
            Cancel::Interrupt => {
                child.signal(Signal::INT);
                self.interrupted.notify_waiters();
            }
            Cancel::Kill => self.parts.workload.kill(child),
        }
    }

    /// Runs code and answers with the stream of what it does.
    pub(crate) async fn execute(self: &Arc<Self>, request: Execute) -> Reply {
        if request.time_limit_ms == 0 {
            return Err(ApiError::invalid(
                "`time_limit_ms` is 0; it must be at least 1",
            ));
        }
        let turn = Arc::clone(&self.turn)
            .try_lock_owned()
            .map_err(|_| ApiError::conflict("the kernel is busy with another call"))?;
        let claim = self.parts.registry.claim(request.execution)?;
        self.facts.with(|facts| facts.begin_call(request.execution));
        let (frames, response) = reply::frames();
        let sink = Sink::new(frames, Some(request.output_limit_bytes), claim.log());
        let begun = sink.hold_answer();
        let execution = request.execution;
        sink.event(&EventBody::ExecutionStarted { execution }).await;
        let run = Run {
            host: Arc::clone(self),
            sink,
            request,
        };
        tokio::spawn(run.finish(turn, claim));
        // Dropped without a word it has begun too.
        let _ = begun.await;
        Ok(response)
    }

    /// Ends a kernel that nobody has used for so long. It does nothing while somebody does.
    pub(crate) async fn end_unused(&self, unused_for: Duration) {
        if let Ok(mut seat) = self.seat.try_lock() {
            let time = in_words(unused_for);
            self.end_seated(
                &mut seat,
                &format!("the kernel was ended after {time} without use"),
            )
            .await;
        }
    }

    /// Ends the kernel where nothing uses the sandbox at this moment, and says how many processes
    /// that were. A call that comes meanwhile waits, and gets a fresh one.
    pub(crate) async fn end_idle(&self) -> Result<u32, ApiError> {
        let in_use = || ApiError::conflict("the sandbox is in use");
        let mut seat = self.seat.try_lock().map_err(|_| in_use())?;
        // Looked at with the seat in hand: a call counts as use before it asks for the seat.
        if self.parts.activity.is_in_use() {
            return Err(in_use());
        }
        let processes = self.parts.workload.count().await;
        self.end_seated(&mut seat, "the kernel was ended because nobody used it")
            .await;
        Ok(processes)
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
            self.parts.workload.kill(&child);
        }
        self.end_seated(&mut *self.seat.lock().await, reason).await;
    }

    async fn end_seated(&self, seat: &mut Seat, reason: &str) {
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
                self.parts.workload.kill(&kernel.child);
            }
        }
        let end = end_of(&mut kernel.ended).await;
        self.facts
            .with(|facts| facts.note_end(facts.generation, &end));
    }
}

/// A time as people say it, such as `15 min`.
fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_people_say_them() {
        for (ms, words) in [(900_000, "15 min"), (90_000, "90 s"), (1500, "1500 ms")] {
            assert_eq!(in_words(Duration::from_millis(ms)), words);
        }
    }
}
