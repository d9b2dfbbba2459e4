//! Sandboxes: made behind the gate, seen by those whose they are, ended.

use chrono::{TimeDelta, Utc};
use glovebox_client::ClientError;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::CreateSandbox;
use glovebox_protocol::ids::{SandboxId, ThreadId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_store::{
    Access, Actor, EndedWhy, Entry, Lease, LeaseState, NewLease, ProfileSettings, StoreError,
    Workspace,
};

use super::App;
use super::gate::{self, Denial, Grant};
use super::hard_limit;
use crate::failure::chain;

/// The name of the setting that holds the public half of the key that agents obey.
const AGENT_KEY: &str = "agent_key";

/// Why sandboxes end when that key is made anew.
pub(crate) const NEW_KEY: &str = "the key that its agent obeys was made anew";

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The gate refused.
    #[error("{}", .0.message)]
    Denied(Denial),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runtime failed or refused.
    #[error(transparent)]
    Runtime(#[from] ClientError),
    /// There is none, or the caller may not know of it.
    #[error("there is no such sandbox")]
    NotFound,
    /// It has ended.
    #[error("the sandbox has ended: {why}")]
    Gone {
        /// Why, in words.
        why: String,
    },
}

impl App {
    /// Makes a sandbox and returns when it takes code.
    ///
    /// # Errors
    /// See [`SandboxError`]. A sandbox that could not be made leaves its lease, with the reason.
    pub async fn create_sandbox(
        &self,
        access: &Access,
        class: Option<ResourceClass>,
    ) -> Result<Lease, SandboxError> {
        self.make_sandbox(access, class, SandboxId::new(), None)
            .await
    }

    /// Makes the sandbox of a thread.
    ///
    /// # Errors
    /// As for [`App::create_sandbox`]; also when the thread is not there any more.
    pub async fn create_sandbox_of(
        &self,
        access: &Access,
        thread: ThreadId,
    ) -> Result<Lease, SandboxError> {
        self.make_sandbox(access, None, SandboxId::new(), Some(thread))
            .await
    }

    /// Makes a sandbox under an id that is told before it is there, for a thread or for whoever
    /// asks.
    ///
    /// # Errors
    /// As for [`App::create_sandbox`]; also when the thread is not there any more.
    pub(crate) async fn make_sandbox(
        &self,
        access: &Access,
        class: Option<ResourceClass>,
        id: SandboxId,
        thread: Option<ThreadId>,
    ) -> Result<Lease, SandboxError> {
        let grant = self.pass_gate(access, class).await?;
        let settings = &grant.profile.settings;
        let hard_deadline = Utc::now() + TimeDelta::seconds(settings.hard_seconds.into());
        let new = NewLease {
            id,
            profile_id: grant.profile.id,
            thread_id: thread,
            class: grant.class,
            idle_limit_ms: i64::from(settings.idle_seconds) * 1000,
            hard_deadline,
        };
        let mut changes = self.store().begin().await?;
        let Some(workspace) = changes.hold_workspace(access.workspace()).await? else {
            return Err(SandboxError::NotFound);
        };
        if let Some(thread) = thread
            && changes.hold_thread(thread).await?.is_none()
        {
            return Err(SandboxError::NotFound);
        }
        let placed = changes
            .create_lease(access, &workspace.quotas, &new)
            .await?;
        if let Err(reached) = placed {
            drop(changes);
            return Err(self.denied(access, reached.into()).await?);
        }
        changes.commit().await?;
        let wanted = self.wanted_sandbox(&new, &workspace, settings);
        self.ask_for_sandbox(wanted).await
    }

    /// What a gateway is asked to make for a lease.
    pub(crate) fn wanted_sandbox(
        &self,
        lease: &NewLease,
        workspace: &Workspace,
        settings: &ProfileSettings,
    ) -> CreateSandbox {
        CreateSandbox {
            id: lease.id,
            installation: self.installation(),
            image: None,
            limits: limits(settings, lease.class),
            input_limits: InputLimits {
                file_bytes: settings.max_input_file_bytes,
                total_bytes: settings.max_input_total_bytes,
            },
            trust_domain: trust_domain(workspace),
            start: settings.start,
            // The server ends what is idle: it knows what is running and what is only slow.
            idle_limit_ms: None,
            hard_deadline_ms: lease.hard_deadline.timestamp_millis(),
            start_limit_ms: u64::from(settings.start_timeout_seconds) * 1000,
            is_unclaimed: false,
        }
    }

    /// Has a gateway make the sandbox of a lease that is starting.
    ///
    /// # Errors
    /// When it does not; then the lease has ended, with the reason.
    pub(crate) async fn ask_for_sandbox(
        &self,
        wanted: CreateSandbox,
    ) -> Result<Lease, SandboxError> {
        let app = self.clone();
        // A task of its own: who asked may go away, and the lease has to be kept all the same.
        let making = tokio::spawn(async move { app.have_it_made(&wanted).await });
        match making.await {
            Ok(made) => made,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(SandboxError::Gone {
                    why: "the server was ended while it was being made".into(),
                }),
            },
        }
    }

    async fn have_it_made(&self, wanted: &CreateSandbox) -> Result<Lease, SandboxError> {
        let id = wanted.id;
        let made = self.gateway().create(wanted).await;
        self.metrics().sandbox_started(made.is_ok());
        if let Err(error) = made {
            let detail = chain(&error);
            self.store()
                .end_lease(id, EndedWhy::StartFailed, &detail)
                .await?;
            // It may be there all the same, where only the answer was lost.
            let _ = self.gateway().delete(id).await;
            return Err(error.into());
        }
        self.store()
            .move_lease(id, LeaseState::Starting, LeaseState::Ready)
            .await?;
        let lease = self.store().lease(id).await?;
        let lease = lease.ok_or(SandboxError::NotFound)?;
        if lease.state == LeaseState::Ended {
            // It was ended while it was being made.
            self.gateway().delete(id).await?;
        }
        Ok(lease)
    }

    /// Lets somebody through the gate, or keeps the denial for those who look after the workspace.
    pub(crate) async fn pass_gate(
        &self,
        access: &Access,
        class: Option<ResourceClass>,
    ) -> Result<Grant, SandboxError> {
        match gate::decide(self.store(), self.break_glass(), access, class).await? {
            Ok(grant) => Ok(grant),
            Err(denial) => Err(self.denied(access, denial).await?),
        }
    }

    /// Keeps a denial, and makes it the answer.
    pub(crate) async fn denied(
        &self,
        access: &Access,
        denial: Denial,
    ) -> Result<SandboxError, StoreError> {
        self.metrics().denied(denial.name);
        self.store()
            .keep_denial(access.workspace(), denial.name, access.name())
            .await?;
        Ok(SandboxError::Denied(denial))
    }

    /// A sandbox that takes code or files: one that was suspended counts again first.
    ///
    /// # Errors
    /// When the gate does not let the caller through, there is none, or it has ended.
    pub(crate) async fn usable_sandbox(
        &self,
        access: &Access,
        id: SandboxId,
    ) -> Result<(Lease, Grant), SandboxError> {
        let lease = self.store().lease_of(access, id).await?;
        self.use_lease(access, lease.ok_or(SandboxError::NotFound)?)
            .await
    }

    /// The same for a sandbox that was found in another way than by who may see it: a thread's is
    /// used by whoever may write into the thread.
    ///
    /// # Errors
    /// When the gate does not let the caller through, or it has ended.
    pub(crate) async fn use_lease(
        &self,
        access: &Access,
        lease: Lease,
    ) -> Result<(Lease, Grant), SandboxError> {
        let grant = self.pass_gate(access, Some(lease.class)).await?;
        if lease.state != LeaseState::Ended && Utc::now() >= hard_limit::last_call(&lease) {
            // Here, so that whoever gets a new one in its place finds what was in it.
            self.end_at_hard_limit(&lease).await?;
            let why = hard_limit::words(&lease);
            return Err(SandboxError::Gone { why });
        }
        match lease.state {
            LeaseState::Ended => Err(gone(&lease)),
            LeaseState::Starting | LeaseState::Ready => Ok((lease, grant)),
            LeaseState::Suspended => {
                let mut changes = self.store().begin().await?;
                let workspace = changes.hold_workspace(access.workspace()).await?;
                let workspace = workspace.ok_or(SandboxError::NotFound)?;
                let room = changes.has_room(workspace.id, &workspace.quotas).await?;
                if let Err(reached) = room {
                    drop(changes);
                    return Err(self.denied(access, reached.into()).await?);
                }
                changes.resume_lease(lease.id).await?;
                changes.commit().await?;
                Ok((lease, grant))
            }
        }
    }

    /// Ends a sandbox: everything in it is gone when this returns.
    ///
    /// # Errors
    /// When there is none, or the runtime does not confirm it.
    pub async fn end_sandbox(&self, access: &Access, id: SandboxId) -> Result<Lease, SandboxError> {
        let lease = self.store().lease_of(access, id).await?;
        lease.ok_or(SandboxError::NotFound)?;
        let detail = format!("{} asked for it", access.name());
        self.remove_sandbox(id, EndedWhy::Asked, &detail).await?;
        self.store().lease(id).await?.ok_or(SandboxError::NotFound)
    }

    /// Ends anybody's sandbox, for a system admin.
    ///
    /// # Errors
    /// When there is none, or the runtime does not confirm it.
    pub async fn end_sandbox_as_admin(
        &self,
        actor: &Actor,
        id: SandboxId,
    ) -> Result<Lease, SandboxError> {
        let lease = self.store().lease(id).await?;
        let lease = lease.ok_or(SandboxError::NotFound)?;
        let mut changes = self.store().begin().await?;
        changes
            .record(
                actor,
                Entry {
                    action: "sandbox.end",
                    object_kind: "sandbox",
                    object_id: Some(id.to_string()),
                    object: &id.to_string(),
                    workspace: Some(lease.workspace_id),
                    fields: &[],
                },
            )
            .await?;
        changes.commit().await?;
        let detail = format!("{} ended it", actor.name);
        self.remove_sandbox(id, EndedWhy::Admin, &detail).await?;
        self.store().lease(id).await?.ok_or(SandboxError::NotFound)
    }

    /// Ends all sandboxes where the key that their agents obey was made anew since a server last
    /// started: nobody can speak to them any more. The worker takes them away.
    pub(crate) async fn end_what_obeys_another_key(&self) -> Result<(), StoreError> {
        let key = self.signing().public().to_string();
        let mut changes = self.store().begin().await?;
        let before: Option<String> = changes.setting(AGENT_KEY).await?;
        if before.as_ref() == Some(&key) {
            return Ok(());
        }
        if before.is_some() {
            let ended = changes.end_live_leases(EndedWhy::Admin, NEW_KEY).await?;
            tracing::info!(ended, "sandboxes that obey an older key have ended");
        }
        changes.set(AGENT_KEY, &key).await?;
        changes.commit().await
    }

    /// Ends a sandbox at its gateway and notes why. One that the gateway does not know is gone.
    pub(crate) async fn remove_sandbox(
        &self,
        id: SandboxId,
        why: EndedWhy,
        detail: &str,
    ) -> Result<(), SandboxError> {
        // First the note: what runs in it then sees that this was meant.
        self.store().end_lease(id, why, detail).await?;
        match self.gateway().delete(id).await {
            Ok(_) => Ok(()),
            Err(error) if is_unknown(&error) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether a gateway says that it has no such sandbox, or none any more.
pub(crate) fn is_unknown(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(ErrorCode::NotFound | ErrorCode::SandboxGone)
    )
}

/// What people are told of a sandbox that has ended.
pub(crate) fn gone(lease: &Lease) -> SandboxError {
    let why = match (&lease.ended_why, &lease.ended_detail) {
        (_, Some(detail)) if !detail.is_empty() => detail.clone(),
        (Some(why), _) => why.to_string(),
        _ => "for a reason that was not kept".into(),
    };
    SandboxError::Gone { why }
}

/// Who may share a warm start: the organization, else the workspace.
pub(crate) fn trust_domain(workspace: &Workspace) -> String {
    workspace.organization_id.map_or_else(
        || format!("workspace:{}", workspace.id),
        |id| format!("organization:{id}"),
    )
}

/// The hard limits of a class on a profile.
pub(crate) fn limits(settings: &ProfileSettings, class: ResourceClass) -> Limits {
    let workspace_bytes = u64::from(settings.workspace_disk_mb) << 20;
    Limits {
        workspace_bytes,
        file_size_bytes: workspace_bytes,
        ..Limits::of(class)
    }
}
