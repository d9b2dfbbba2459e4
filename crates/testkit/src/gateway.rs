//! What is behind a gateway, as a runtime: so that whatever is checked of runtimes is checked of
//! sandboxes behind a gateway as well.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use glovebox_client::{ClientError, GatewayClient};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::{CreateSandbox, SandboxState as Seen, SandboxView};
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::{
    AgentStream, Description, Reply, Runtime, RuntimeError, Sandbox, SandboxSpec, SandboxState,
    ValidatedSpec,
};

/// How long a sandbox may be there whose spec sets no end, in milliseconds.
const LIFE_MS: u128 = 3_600_000;

/// How long making one may take, in milliseconds.
const START_LIMIT_MS: u64 = 120_000;

/// What is behind a gateway. Agents are reached through the client, never by a stream.
pub struct GatewayRuntime {
    gateway: GatewayClient,
    description: Description,
    /// What was removed: a gateway knows one way of ending, after which it still tells why.
    removed: Removed,
}

type Removed = Arc<Mutex<BTreeSet<SandboxId>>>;

impl GatewayRuntime {
    /// Asks the gateway what it has.
    ///
    /// # Errors
    /// When it does not say so.
    pub async fn of(gateway: GatewayClient) -> Result<Self> {
        let info = gateway.info().await.context("asking the gateway")?;
        let description = Description {
            name: "gateway",
            capabilities: info.capabilities,
        };
        Ok(Self {
            gateway,
            description,
            removed: Removed::default(),
        })
    }

    fn is_removed(&self, id: SandboxId) -> bool {
        self.removed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&id)
    }

    async fn delete(&self, id: SandboxId) -> Result<(), RuntimeError> {
        match self.gateway.delete(id).await {
            // One that is not there has ended.
            Err(error) if is_absent(&error) => Ok(()),
            deleted => deleted.map(drop).map_err(|error| fault(id, error)),
        }
    }

    async fn look(&self, id: SandboxId) -> Result<Sandbox, RuntimeError> {
        let view = self.gateway.sandbox(id).await;
        let view = view.map_err(|error| fault(id, error))?;
        if self.is_removed(id) {
            return Err(RuntimeError::NotFound { id, reason: None });
        }
        Ok(sandbox(view))
    }
}

fn forget(removed: &Removed, id: SandboxId) {
    let mut removed = removed.lock().unwrap_or_else(PoisonError::into_inner);
    removed.insert(id);
}

/// Ends a sandbox that nobody waits for any more: a gateway keeps it for whoever asks again.
struct Unwanted(Option<(GatewayClient, Removed, SandboxId)>);

impl Drop for Unwanted {
    fn drop(&mut self) {
        if let Some((gateway, removed, id)) = self.0.take() {
            tokio::spawn(async move {
                if gateway.delete(id).await.is_ok() {
                    forget(&removed, id);
                }
            });
        }
    }
}

impl Runtime for GatewayRuntime {
    fn describe(&self) -> Description {
        self.description.clone()
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        Box::pin(async move {
            let wanted = wanted(spec.get());
            let mut unwanted = Unwanted(Some((
                self.gateway.clone(),
                Arc::clone(&self.removed),
                wanted.id,
            )));
            let made = self.gateway.create(&wanted).await;
            unwanted.0 = None;
            made.map(sandbox).map_err(|error| fault(wanted.id, error))
        })
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        Box::pin(self.look(id))
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        Box::pin(async {
            let list = self.gateway.sandboxes(None).await;
            let list = list.map_err(|error| fault(SandboxId::new(), error))?;
            let there = list.items.into_iter();
            let there = there.filter(|view| !self.is_removed(view.id));
            Ok(there.map(sandbox).collect())
        })
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        Box::pin(async move {
            if let SandboxState::Ended { reason } = self.look(id).await?.state {
                let reason = Some(reason);
                return Err(RuntimeError::NotFound { id, reason });
            }
            Err(RuntimeError::Unsupported {
                what: "a stream to an agent behind a gateway".into(),
                fix: Some("ask the gateway's client for a client of the agent".into()),
                cause: None,
            })
        })
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.delete(id))
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(async move {
            self.delete(id).await?;
            forget(&self.removed, id);
            Ok(())
        })
    }
}

/// The keys of a spec are not asked for: a gateway hands out those of its own configuration.
fn wanted(spec: &SandboxSpec) -> CreateSandbox {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let end = now.map_or(0, |now| now.as_millis()) + LIFE_MS;
    CreateSandbox {
        id: spec.id,
        installation: spec.installation,
        image: spec.image.clone(),
        limits: spec.limits.clone(),
        input_limits: spec.input_limits,
        trust_domain: spec.trust_domain.clone(),
        start: spec.start,
        idle_limit_ms: spec.idle_limit_ms,
        hard_deadline_ms: spec
            .hard_deadline_ms
            .unwrap_or_else(|| i64::try_from(end).unwrap_or(i64::MAX)),
        start_limit_ms: START_LIMIT_MS,
        is_unclaimed: spec.is_unclaimed,
    }
}

fn sandbox(view: SandboxView) -> Sandbox {
    Sandbox {
        id: view.id,
        state: match view.state {
            Seen::Ended { reason, .. } => SandboxState::Ended { reason },
            Seen::Starting | Seen::Running | Seen::Ending { .. } => SandboxState::Running,
        },
        hard_deadline_ms: view.hard_deadline_ms,
        agent_epoch: view.agent_epoch,
    }
}

fn is_absent(error: &ClientError) -> bool {
    matches!(
        error.code(),
        Some(ErrorCode::NotFound | ErrorCode::SandboxGone)
    )
}

/// What a runtime would have said.
fn fault(id: SandboxId, error: ClientError) -> RuntimeError {
    let ClientError::Refused(body) = &error else {
        return RuntimeError::Unavailable {
            doing: "talking to the gateway".into(),
            fix: None,
            cause: error.into(),
        };
    };
    match body.code {
        ErrorCode::NotFound | ErrorCode::SandboxGone => RuntimeError::NotFound {
            id,
            reason: Some(body.message.clone()),
        },
        ErrorCode::Conflict => RuntimeError::AlreadyExists { id },
        ErrorCode::CapabilityMissing => RuntimeError::Unsupported {
            what: body.message.clone(),
            fix: body.fix.clone(),
            cause: Some(error.into()),
        },
        ErrorCode::Invalid | ErrorCode::ImageNotAllowed => RuntimeError::Invalid(error.into()),
        ErrorCode::Exhausted => RuntimeError::Exhausted(error.into()),
        ErrorCode::RuntimeUnavailable | ErrorCode::StartTimeout => RuntimeError::Unavailable {
            doing: body.message.clone(),
            fix: body.fix.clone(),
            cause: error.into(),
        },
        _ => RuntimeError::Internal {
            doing: body.message.clone(),
            cause: error.into(),
        },
    }
}
