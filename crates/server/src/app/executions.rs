//! Running code in a sandbox: asked for once, driven to its end, every event stored.

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::process::Cancel;
use glovebox_protocol::sign::BodyDigest;
use glovebox_store::{Access, Execution, ExecutionState, Lease, LeaseState, NewExecution, Placed};

use super::App;
use super::drive::Drive;
use super::gate::Grant;
use super::sandboxes::{SandboxError, gone, is_unknown};

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
    /// The server is about to end.
    #[error("the server is being stopped and begins nothing new")]
    Stopping,
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
        let Some(at_work) = self.stopping().begin() else {
            return Err(ExecutionError::Stopping);
        };
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
            lease_id: lease.id,
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
        changes.commit().await?;
        let execute = Execute {
            execution: id,
            code: wish.code,
            time_limit_ms: u64::from(seconds) * 1000,
            output_limit_bytes: Execute::default_output_limit_bytes(),
            silent: false,
        };
        let drive = Drive {
            app: self.clone(),
            lease: lease.clone(),
            grant,
            driven,
            _at_work: at_work,
        };
        tokio::spawn(drive.run(execute));
        Ok(id)
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

    /// Interrupts one execution, or kills the kernel that runs it; never another one. One that has
    /// not reached its sandbox yet is cancelled when it does.
    ///
    /// # Errors
    /// When there is no such execution, its sandbox is gone, or the runtime does not do it.
    pub async fn interrupt(
        &self,
        access: &Access,
        sandbox: SandboxId,
        id: ExecutionId,
        how: Cancel,
    ) -> Result<Execution, ExecutionError> {
        let execution = self.execution(access, sandbox, id).await?;
        if execution.state == ExecutionState::Running {
            match self.agent(sandbox).cancel_execute(id, how).await {
                Ok(()) => {}
                // It has ended by itself in the meantime.
                Err(error) if error.code() == Some(ErrorCode::Conflict) => {}
                Err(error) if is_unknown(&error) => return self.without(access, sandbox, id).await,
                Err(error) => return Err(SandboxError::Runtime(error).into()),
            }
        }
        self.execution(access, sandbox, id).await
    }

    /// What is answered of an execution whose sandbox is not there any more.
    async fn without(
        &self,
        access: &Access,
        sandbox: SandboxId,
        id: ExecutionId,
    ) -> Result<Execution, ExecutionError> {
        let execution = self.execution(access, sandbox, id).await?;
        if execution.state == ExecutionState::Ended {
            return Ok(execution);
        }
        let lease = self.store().lease(sandbox).await?;
        let lease = lease.ok_or(SandboxError::NotFound)?;
        if lease.state == LeaseState::Ended {
            return Err(gone(&lease).into());
        }
        let why = "its gateway does not know it any more".into();
        Err(SandboxError::Gone { why }.into())
    }
}
