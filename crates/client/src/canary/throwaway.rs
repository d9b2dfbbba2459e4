//! Throwaway sandboxes behind a gateway: one of each start that tries, and one that they try to
//! reach.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::{CanaryReport, CreateSandbox};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::SigningKey;

use super::CanaryError;
use super::starts::run_starts;
use crate::exchange::now_ms;
use crate::{AgentClient, ClientError, GatewayClient, Identity};

/// How long a throwaway sandbox may be there at most.
const LIFE: Duration = Duration::from_secs(600);

/// How long making one may take, in milliseconds.
const START_LIMIT_MS: u64 = 90_000;

/// Room for what attempts write.
const WORKSPACE_BYTES: u64 = 64 * 1024 * 1024;

/// Makes throwaway sandboxes behind a gateway, lets one of each start try everything of the
/// gateway's plan, and ends them all.
///
/// # Errors
/// When there is no result for every target, or one of the sandboxes does not end. That is no
/// pass.
pub async fn prove(
    client: &GatewayClient,
    key: &Arc<SigningKey>,
    installation: InstallationId,
) -> Result<CanaryReport, CanaryError> {
    let throwaway = Throwaway {
        client,
        key,
        installation,
        ids: Mutex::default(),
    };
    let report = run_starts(client, &|start| Box::pin(throwaway.make(start))).await;
    let gone = throwaway.take_away().await;
    let report = report?;
    gone?;
    Ok(report)
}

struct Throwaway<'a> {
    client: &'a GatewayClient,
    key: &'a Arc<SigningKey>,
    installation: InstallationId,
    /// Everything that was asked for, whether it came about or not.
    ids: Mutex<Vec<SandboxId>>,
}

impl Throwaway<'_> {
    async fn make(&self, start: Start) -> Result<AgentClient, ClientError> {
        let id = SandboxId::new();
        self.ids().push(id);
        let limits = Limits {
            workspace_bytes: WORKSPACE_BYTES,
            ..Limits::of(ResourceClass::Small)
        };
        let life = i64::try_from(LIFE.as_millis()).unwrap_or(i64::MAX);
        let wanted = CreateSandbox {
            id,
            installation: self.installation,
            image: None,
            limits,
            input_limits: InputLimits::default(),
            trust_domain: id.to_string(),
            start,
            idle_limit_ms: None,
            hard_deadline_ms: now_ms().saturating_add(life),
            start_limit_ms: START_LIMIT_MS,
            is_unclaimed: false,
        };
        let made = self.client.create(&wanted).await?;
        let identity = Identity {
            key: Arc::clone(self.key),
            installation: self.installation,
            sandbox: id,
        };
        Ok(self.client.agent(identity, made.agent_epoch))
    }

    fn ids(&self) -> MutexGuard<'_, Vec<SandboxId>> {
        // A list of ids has no state in which it could be left half changed.
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take_away(&self) -> Result<(), ClientError> {
        let mut first = Ok(());
        let ids = std::mem::take(&mut *self.ids());
        for id in ids {
            let ended = match self.client.delete(id).await {
                Err(error) if error.code() != Some(ErrorCode::NotFound) => Err(error),
                _ => Ok(()),
            };
            first = first.and(ended);
        }
        first
    }
}
