//! One execution on its way from its start to its end, every event stored.
//!
//! Whoever waits for it gets a last event in any case: how the code ended, or why it was ended from
//! here, or what is known of a sandbox that went away under it.

use std::time::{Duration, Instant};

use chrono::Utc;
use glovebox_client::{ClientError, Execution as Stream};
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::gateway::{HARD_LIMIT_REACHED, SandboxState};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::process::Cancel;
use glovebox_store::{EndedWhy, Lease, LeaseState, StoreError};
use tokio::time::{sleep_until, timeout_at};

use super::App;
use super::collect::Collection;
use super::gate::Grant;
use super::hard_limit;
use super::kept::Kept;
use super::running::Driven;
use super::stopping::AtWork;
use crate::failure::chain;

/// How many events are stored together at most.
const BATCH: usize = 256;

/// How long events wait for others to be stored with.
const BATCH_PATIENCE: Duration = Duration::from_millis(25);

/// For how long a gateway that does not answer is waited for before code is given up: it is started
/// again when it ends.
pub(crate) const GATEWAY_PATIENCE: Duration = Duration::from_secs(20);

/// How long it is waited before it is asked again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long code may take to end after it was interrupted, and again after it was killed.
const END_PATIENCE: Duration = Duration::from_secs(2);

/// How long an agent may take to show that it is there.
const WAKE_PATIENCE: Duration = Duration::from_secs(5);

/// How long what code saved may take to be collected where the server stops.
const STOP_COLLECTION: Duration = Duration::from_secs(5);

/// One execution on its way.
pub(super) struct Drive {
    pub(super) app: App,
    pub(super) lease: Lease,
    pub(super) grant: Grant,
    pub(super) driven: Driven,
    pub(super) _at_work: AtWork,
}

/// Why code is ended from here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Its sandbox is about to reach its hard limit.
    HardLimit,
    /// The server that drives it stops.
    ServerStops,
}

/// Why a stream of events broke.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the code did not end when it was interrupted and killed")]
    Endless,
}

/// Whether there was no way to the agent, so that nothing can have run.
pub(crate) fn is_away(error: &ClientError) -> bool {
    matches!(error, ClientError::Connect(_)) || error.code() == Some(ErrorCode::RuntimeUnavailable)
}

/// The word for a gateway's reason, and what people are told.
pub(crate) fn ended_because(lease: &Lease, reason: String) -> (EndedWhy, String) {
    if reason == HARD_LIMIT_REACHED {
        (EndedWhy::HardLimit, hard_limit::words(lease))
    } else if reason.contains("memory") {
        (EndedWhy::OutOfMemory, reason)
    } else {
        (EndedWhy::GatewayLost, reason)
    }
}

impl Drive {
    pub(super) async fn run(self, execute: Execute) {
        let id = execute.execution;
        let mut kept = Kept::new(id, &self.grant.profile);
        let (ended, cut) = self.stream(&execute, &mut kept).await;
        let has_ended = matches!(ended, Ok(EventBody::ExecutionEnded(_)));
        let last = match (ended, cut) {
            (Ok(last), None) => last,
            // It came to its end all the same.
            (Ok(EventBody::ExecutionEnded(ended)), _) if ended.outcome.is_success() => {
                EventBody::ExecutionEnded(ended)
            }
            (_, Some(cut)) => self.told(cut),
            (Err(error), None) => self.failed(&error).await,
        };
        self.app.metrics().executed(&last);
        let collects = has_ended || cut == Some(Cut::HardLimit);
        if let Err(error) = self.finish(kept, last, collects.then_some(cut)).await {
            tracing::error!(execution = %id, error = chain(&error), "an execution's end was not kept");
        }
        if cut == Some(Cut::HardLimit)
            && let Err(error) = self.app.end_at_hard_limit(&self.lease).await
        {
            // The worker comes by and does it.
            tracing::warn!(sandbox = %self.lease.id, error = chain(&error), "ending a sandbox");
        }
    }

    /// What the code says until its end; where it is ended from here, also why.
    async fn stream(
        &self,
        execute: &Execute,
        kept: &mut Kept,
    ) -> (Result<EventBody, StreamError>, Option<Cut>) {
        let reading = self.read(execute, kept);
        tokio::pin!(reading);
        let cut = tokio::select! {
            ended = &mut reading => return (ended, None),
            cut = self.until_cut() => cut,
        };
        tracing::info!(execution = %execute.execution, why = ?cut, "code is ended");
        let ended = tokio::select! {
            ended = &mut reading => ended,
            () = self.end_code(execute) => Err(StreamError::Endless),
        };
        (ended, Some(cut))
    }

    async fn until_cut(&self) -> Cut {
        let left = hard_limit::last_call(&self.lease) - Utc::now();
        let last_call = Instant::now() + left.to_std().unwrap_or_default();
        tokio::select! {
            () = sleep_until(last_call.into()) => Cut::HardLimit,
            () = self.app.stopping().until_ending() => Cut::ServerStops,
        }
    }

    /// Interrupts the code and, where that does not help, kills its kernel. Returns when that should
    /// have helped.
    async fn end_code(&self, execute: &Execute) {
        let agent = self.app.agent(self.lease.id);
        for how in [Cancel::Interrupt, Cancel::Kill] {
            let deadline = Instant::now() + END_PATIENCE;
            let asked = agent.cancel_execute(execute.execution, how);
            match timeout_at(deadline.into(), asked).await {
                Ok(Ok(())) => {}
                // It has ended meanwhile: its last event is on its way.
                Ok(Err(error)) if error.code() == Some(ErrorCode::Conflict) => {}
                Ok(Err(error)) => {
                    tracing::warn!(sandbox = %self.lease.id, error = chain(&error), "ending code");
                }
                Err(elapsed) => {
                    tracing::warn!(sandbox = %self.lease.id, error = chain(&elapsed), "ending code");
                }
            }
            sleep_until(deadline.into()).await;
        }
    }

    /// The last event of code that was ended from here.
    fn told(&self, cut: Cut) -> EventBody {
        match cut {
            Cut::HardLimit => EventBody::SandboxGone {
                sandbox: self.lease.id,
                reason: hard_limit::words(&self.lease),
            },
            Cut::ServerStops => EventBody::Failed(
                ErrorBody::new(
                    ErrorCode::RuntimeUnavailable,
                    "the server that ran this is being stopped; the code was interrupted",
                )
                .with_fix(
                    "run it again when the server is back; variables and files may still be there",
                ),
            ),
        }
    }

    /// Has the code begun. A gateway that is being started again is waited for: as long as there is
    /// no way to it nothing has run, and an agent runs an execution once however often it is asked.
    async fn begin(&self, execute: &Execute) -> Result<Stream, ClientError> {
        let agent = self.app.agent(self.lease.id);
        let deadline = Instant::now() + GATEWAY_PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            match agent.execute(execute).await {
                Err(error) if is_away(&error) && Instant::now() + pause < deadline => {
                    sleep_until((Instant::now() + pause).into()).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                begun => return begun,
            }
        }
    }

    /// Passes events on until the last one, which is given back.
    async fn read(&self, execute: &Execute, kept: &mut Kept) -> Result<EventBody, StreamError> {
        let mut running = self.begin(execute).await?;
        let mut flush_at: Option<Instant> = None;
        loop {
            let next = match flush_at {
                None => running.next().await?,
                Some(at) => {
                    let waited = timeout_at(at.into(), running.next()).await;
                    match waited {
                        Ok(next) => next?,
                        Err(_) => {
                            self.flush(kept).await?;
                            flush_at = None;
                            continue;
                        }
                    }
                }
            };
            let Some(body) = next else {
                return Err(StreamError::Client(ClientError::Cut));
            };
            if matches!(body, EventBody::ExecutionEnded(_) | EventBody::Failed(_)) {
                return Ok(body);
            }
            kept.take(body);
            if kept.waiting.len() >= BATCH {
                self.flush(kept).await?;
                flush_at = None;
            } else if flush_at.is_none() && !kept.waiting.is_empty() {
                flush_at = Some(Instant::now() + BATCH_PATIENCE);
            }
        }
    }

    async fn flush(&self, kept: &mut Kept) -> Result<(), StoreError> {
        if kept.waiting.is_empty() {
            return Ok(());
        }
        self.app.store().keep_events(kept.id, &kept.waiting).await?;
        kept.waiting.clear();
        self.driven.stored(kept.seq);
        Ok(())
    }

    /// Collects what the code saved, and stores the end.
    async fn finish(
        &self,
        mut kept: Kept,
        last: EventBody,
        collects: Option<Option<Cut>>,
    ) -> Result<(), StoreError> {
        kept.note_dropped();
        if let Some(cut) = collects {
            self.collect(&mut kept, cut).await;
        }
        kept.push(last);
        self.app.store().touch_lease(self.lease.id).await?;
        let bodies: Vec<_> = kept.waiting.drain(..).collect();
        self.app.store().finish_execution(kept.id, &bodies).await?;
        self.driven.stored(kept.seq);
        Ok(())
    }

    async fn collect(&self, kept: &mut Kept, cut: Option<Cut>) {
        let until = match cut {
            Some(Cut::ServerStops) => (Instant::now() + STOP_COLLECTION).into(),
            _ => hard_limit::collect_until(&self.lease),
        };
        let collection = Collection {
            settings: &self.grant.profile.settings,
            workspace: &self.grant.workspace,
            until,
        };
        let collected = self.app.collect(self.lease.id, kept.id, &collection).await;
        match collected {
            Ok(events) => events.into_iter().for_each(|body| kept.push(body)),
            // The code has run all the same, and that is what its end says.
            Err(error) => {
                let error = chain(&error);
                tracing::error!(sandbox = %self.lease.id, error, "collecting what code saved");
                kept.push(EventBody::NotCollected {
                    message: "the server could not store what the code saved; the files are still \
                              in the sandbox, and the next run collects them"
                        .into(),
                });
            }
        }
    }

    /// Has the gateway look after the sandbox: that one has ended by itself it learns within moments
    /// when somebody talks to the agent, else with its next look around.
    async fn wake_gateway(&self) {
        let agent = self.app.agent(self.lease.id);
        let deadline = Instant::now() + WAKE_PATIENCE;
        match timeout_at(deadline.into(), agent.health()).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::debug!(sandbox = %self.lease.id, error = chain(&error), "asking an agent");
            }
            Err(error) => {
                tracing::debug!(sandbox = %self.lease.id, error = chain(&error), "asking an agent");
            }
        }
    }

    /// What is told of an execution whose stream broke: why, as far as it can be known.
    async fn failed(&self, error: &StreamError) -> EventBody {
        let sandbox = self.lease.id;
        let lease = self.app.store().lease(sandbox).await.ok().flatten();
        if let Some(lease) = lease.filter(|lease| lease.state == LeaseState::Ended) {
            let reason = lease.ended_detail.unwrap_or_default();
            return EventBody::SandboxGone { sandbox, reason };
        }
        let StreamError::Client(error) = error else {
            return EventBody::Failed(ErrorBody::new(
                ErrorCode::Internal,
                "the server could not keep what the code said",
            ));
        };
        self.wake_gateway().await;
        if let Ok(view) = self.app.gateway().sandbox(sandbox).await
            && let SandboxState::Ended { reason, .. } = view.state
        {
            let (why, reason) = ended_because(&self.lease, reason);
            let ended = self.app.store().end_lease(sandbox, why, &reason).await;
            if let Err(error) = ended {
                tracing::error!(error = chain(&error), "the end of a sandbox was not kept");
            }
            return EventBody::SandboxGone { sandbox, reason };
        }
        match error {
            ClientError::Refused(body) => EventBody::Failed((**body).clone()),
            ClientError::Connect(_) => EventBody::Failed(
                ErrorBody::new(
                    ErrorCode::RuntimeUnavailable,
                    "the gateway of the sandbox does not answer; nothing was run",
                )
                .with_fix("run it again in a moment; variables and files are still there"),
            ),
            error => {
                tracing::warn!(%sandbox, error = chain(error), "an execution's stream broke");
                EventBody::Failed(
                    ErrorBody::new(
                        ErrorCode::RuntimeUnavailable,
                        "the connection to the sandbox broke; what was running was interrupted",
                    )
                    .with_fix("run it again; variables and files may still be there"),
                )
            }
        }
    }
}
