//! Running code in a sandbox: asked for once, driven to its end, every event stored.

mod kept;

use std::time::{Duration, Instant};

use glovebox_client::{ClientError, Execution as Stream};
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::gateway::HARD_LIMIT_REACHED;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::process::Cancel;
use glovebox_protocol::sign::BodyDigest;
use glovebox_store::{
    Access, EndedWhy, Execution, ExecutionState, Lease, LeaseState, NewExecution, Placed,
};

use kept::Kept;

use super::gate::Grant;
use super::running::Driven;
use super::sandboxes::SandboxError;
use super::{App, to_its_end};
use crate::failure::{chain, is_disk_full};

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

/// How often a sandbox is resumed for one wish that is suspended each time.
const RESUMES: u32 = 3;

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Wish {
    /// The code.
    pub code: String,
    /// After how many seconds it is interrupted; the profile's where nobody says.
    pub time_limit_seconds: Option<u32>,
    /// What the caller calls this request, so that it may be repeated.
    pub idempotency_key: Option<String>,
}

/// Why code is not run.
#[derive(Debug, thiserror::Error)]
pub enum ExecutionError {
    /// There is no sandbox to run it in.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// Something else was asked for under the same key.
    #[error("another request was sent with this Idempotency-Key")]
    KeyIsTaken,
    /// Other code runs.
    #[error("other code runs in the sandbox")]
    Busy {
        /// Which execution.
        execution: ExecutionId,
    },
    /// It was suspended, or has ended, at this very moment.
    #[error("the sandbox takes no code at this moment")]
    NotReady,
    /// It may not run for so long.
    #[error("the profile allows {max} s for one execution, not {asked} s")]
    TooLong {
        /// What was asked for, in seconds.
        asked: u32,
        /// What the profile allows, in seconds.
        max: u32,
    },
    /// There is no such execution.
    #[error("there is no such execution")]
    NotFound,
}

impl From<glovebox_store::StoreError> for ExecutionError {
    fn from(error: glovebox_store::StoreError) -> Self {
        Self::Sandbox(error.into())
    }
}

impl App {
    /// Takes a wish to run code. It runs on when this returns; its events are stored as they come.
    ///
    /// # Errors
    /// See [`ExecutionError`].
    pub async fn execute(
        &self,
        access: &Access,
        sandbox: SandboxId,
        wish: Wish,
    ) -> Result<ExecutionId, ExecutionError> {
        for _ in 0..RESUMES {
            let (lease, grant) = self.usable_sandbox(access, sandbox).await?;
            match self.execute_in(&lease, grant, wish.clone()).await {
                // Suspended between the two: it is resumed, or has ended.
                Err(ExecutionError::NotReady) => {}
                done => return done,
            }
        }
        Err(ExecutionError::NotReady)
    }

    /// Takes a wish to run code in a sandbox that is known to be usable.
    ///
    /// # Errors
    /// See [`ExecutionError`].
    pub(crate) async fn execute_in(
        &self,
        lease: &Lease,
        grant: Grant,
        wish: Wish,
    ) -> Result<ExecutionId, ExecutionError> {
        let sandbox = lease.id;
        let settings = &grant.profile.settings;
        let seconds = wish
            .time_limit_seconds
            .unwrap_or(settings.execution_seconds);
        if seconds == 0 || seconds > settings.max_execution_seconds {
            return Err(ExecutionError::TooLong {
                asked: seconds,
                max: settings.max_execution_seconds,
            });
        }
        let id = ExecutionId::new();
        let new = NewExecution {
            id,
            lease_id: sandbox,
            workspace_id: lease.workspace_id,
            idempotency_key: wish.idempotency_key,
            request_hash: BodyDigest::of(format!("{seconds}\n{}", wish.code).as_bytes())
                .to_string(),
        };
        let mut changes = self.store().begin().await?;
        let placed = changes.place_execution(&new).await?;
        match placed {
            Placed::New => {}
            Placed::Repeated(before) => return Ok(before),
            Placed::KeyIsTaken => return Err(ExecutionError::KeyIsTaken),
            Placed::Busy(execution) => return Err(ExecutionError::Busy { execution }),
            Placed::NotReady => return Err(ExecutionError::NotReady),
        }
        // Known as driven before anybody else can see it: nobody takes it for left behind.
        let driven = self.running().begin(id);
        let execute = Execute {
            execution: id,
            code: wish.code,
            time_limit_ms: u64::from(seconds) * 1000,
            output_limit_bytes: Execute::default_output_limit_bytes(),
            silent: false,
        };
        let app = self.clone();
        to_its_end(async move {
            changes.commit().await?;
            let drive = Drive {
                app,
                sandbox,
                grant,
                driven,
            };
            tokio::spawn(drive.run(execute));
            Ok(id)
        })
        .await
    }

    /// One execution of a sandbox that the caller may see.
    ///
    /// # Errors
    /// When there is none.
    pub async fn execution(
        &self,
        access: &Access,
        sandbox: SandboxId,
        id: ExecutionId,
    ) -> Result<Execution, ExecutionError> {
        let lease = self.store().lease_of(access, sandbox).await?;
        lease.ok_or(SandboxError::NotFound)?;
        let found = self.store().execution(sandbox, id).await?;
        found.ok_or(ExecutionError::NotFound)
    }

    /// Interrupts what runs, or kills the kernel that runs it.
    ///
    /// # Errors
    /// When there is no such execution, or the runtime does not do it.
    pub async fn interrupt(
        &self,
        access: &Access,
        sandbox: SandboxId,
        id: ExecutionId,
        how: Cancel,
    ) -> Result<Execution, ExecutionError> {
        let execution = self.execution(access, sandbox, id).await?;
        if execution.state == ExecutionState::Running {
            match self.agent(sandbox).interrupt_kernel(how).await {
                Ok(()) => {}
                // It has ended by itself in the meantime.
                Err(error) if error.code() == Some(ErrorCode::Conflict) => {}
                Err(error) => return Err(SandboxError::Runtime(error).into()),
            }
        }
        self.execution(access, sandbox, id).await
    }
}

/// Whether there was no way to the agent, so that nothing can have run.
pub(crate) fn is_away(error: &ClientError) -> bool {
    matches!(error, ClientError::Connect(_)) || error.code() == Some(ErrorCode::RuntimeUnavailable)
}

/// One execution on its way from start to end.
struct Drive {
    app: App,
    sandbox: SandboxId,
    grant: Grant,
    driven: Driven,
}

impl Drive {
    async fn run(self, execute: Execute) {
        let id = execute.execution;
        let mut kept = Kept::new(id, &self.grant.profile);
        let last = match self.stream(&execute, &mut kept).await {
            Ok(last) => last,
            Err(error) => self.failed(&error).await,
        };
        self.app.metrics().executed(&last);
        if let Err(error) = self.finish(kept, last).await {
            tracing::error!(execution = %id, error = chain(&error), "an execution's end was not kept");
        }
    }

    /// Has the code begun. A gateway that is being started again is waited for: as long as there is
    /// no way to it nothing has run, and an agent runs an execution once however often it is asked.
    async fn begin(&self, execute: &Execute) -> Result<Stream, ClientError> {
        let agent = self.app.agent(self.sandbox);
        let deadline = Instant::now() + GATEWAY_PATIENCE;
        let mut pause = FIRST_PAUSE;
        loop {
            match agent.execute(execute).await {
                Err(error) if is_away(&error) && Instant::now() + pause < deadline => {
                    tokio::time::sleep_until((Instant::now() + pause).into()).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                begun => return begun,
            }
        }
    }

    /// Passes events on until the last one, which is given back.
    async fn stream(&self, execute: &Execute, kept: &mut Kept) -> Result<EventBody, StreamError> {
        let mut running = self.begin(execute).await?;
        let mut flush_at: Option<Instant> = None;
        loop {
            let next = match flush_at {
                None => running.next().await?,
                Some(at) => {
                    let waited = tokio::time::timeout_at(at.into(), running.next()).await;
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

    async fn flush(&self, kept: &mut Kept) -> Result<(), glovebox_store::StoreError> {
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
    ) -> Result<(), glovebox_store::StoreError> {
        kept.note_dropped();
        if matches!(last, EventBody::ExecutionEnded(_)) {
            match self.app.collect(self.sandbox, kept.id, &self.grant).await {
                Ok(events) => events.into_iter().for_each(|body| kept.push(body)),
                // The code has run all the same, and that is what its end says.
                Err(error) => {
                    let why = if is_disk_full(&error) {
                        "the server's disk is full, so that it could not store"
                    } else {
                        "the server could not store"
                    };
                    let error = chain(&error);
                    tracing::error!(sandbox = %self.sandbox, error, "collecting what code saved");
                    kept.push(EventBody::NotCollected {
                        message: format!(
                            "{why} what the code saved; the files are still in the sandbox, and \
                             the next run collects them"
                        ),
                    });
                }
            }
        }
        kept.push(last);
        self.app.store().touch_lease(self.sandbox).await?;
        let bodies: Vec<_> = kept.waiting.drain(..).collect();
        self.app.store().finish_execution(kept.id, &bodies).await?;
        self.driven.stored(kept.seq);
        Ok(())
    }

    /// What is told of an execution whose stream broke: why, as far as it can be known.
    async fn failed(&self, error: &StreamError) -> EventBody {
        let lease = self.app.store().lease(self.sandbox).await.ok().flatten();
        if let Some(lease) = lease.filter(|lease| lease.state == LeaseState::Ended) {
            let reason = lease.ended_detail.unwrap_or_default();
            return EventBody::SandboxGone {
                sandbox: self.sandbox,
                reason,
            };
        }
        let StreamError::Client(error) = error else {
            return EventBody::Failed(ErrorBody::new(
                ErrorCode::Internal,
                "the server could not keep what the code said",
            ));
        };
        if let Ok(view) = self.app.gateway().sandbox(self.sandbox).await
            && let glovebox_protocol::gateway::SandboxState::Ended { reason, .. } = view.state
        {
            let ended = self
                .app
                .store()
                .end_lease(self.sandbox, ended_why(&reason), &reason)
                .await;
            if let Err(error) = ended {
                tracing::error!(error = chain(&error), "the end of a sandbox was not kept");
            }
            return EventBody::SandboxGone {
                sandbox: self.sandbox,
                reason,
            };
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
                tracing::warn!(sandbox = %self.sandbox, error = chain(error), "an execution's stream broke");
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

/// Why a stream of events broke.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Store(#[from] glovebox_store::StoreError),
}

/// The word for a gateway's reason.
pub(crate) fn ended_why(reason: &str) -> EndedWhy {
    if reason == HARD_LIMIT_REACHED {
        EndedWhy::HardLimit
    } else if reason.contains("memory") {
        EndedWhy::OutOfMemory
    } else {
        EndedWhy::GatewayLost
    }
}
