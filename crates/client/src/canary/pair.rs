//! Two throwaway sandboxes behind a gateway: one that tries, and one that it tries to reach.

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::{CanaryReport, CreateSandbox};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::SigningKey;

use super::CanaryError;
use crate::exchange::now_ms;
use crate::{AgentClient, ClientError, GatewayClient, Identity};

/// How long a throwaway sandbox may be there at most.
const LIFE: Duration = Duration::from_secs(600);

/// How long making one may take, in milliseconds.
const START_LIMIT_MS: u64 = 90_000;

/// Room for what attempts write.
const WORKSPACE_BYTES: u64 = 64 * 1024 * 1024;

/// Makes two throwaway sandboxes behind a gateway, lets one of them try everything of the
/// gateway's plan, and ends both.
///
/// # Errors
/// When there is no result for every target, or one of the sandboxes does not end. That is no
/// pass.
pub async fn prove(
    client: &GatewayClient,
    key: &Arc<SigningKey>,
    installation: InstallationId,
) -> Result<CanaryReport, CanaryError> {
    let pair = Pair {
        client,
        key,
        installation,
        ids: [SandboxId::new(), SandboxId::new()],
    };
    let report = pair.report().await;
    let gone = pair.take_away().await;
    let report = report?;
    gone?;
    Ok(report)
}

struct Pair<'a> {
    client: &'a GatewayClient,
    key: &'a Arc<SigningKey>,
    installation: InstallationId,
    ids: [SandboxId; 2],
}

impl Pair<'_> {
    async fn report(&self) -> Result<CanaryReport, CanaryError> {
        let [subject, other] = [self.make(self.ids[0]).await?, self.make(self.ids[1]).await?];
        let plan = self.client.canary_plan().await?;
        super::run(&plan, &subject, &other).await
    }

    async fn make(&self, id: SandboxId) -> Result<AgentClient, ClientError> {
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
            start: Start::Fresh,
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

    async fn take_away(&self) -> Result<(), ClientError> {
        let mut first = Ok(());
        for id in self.ids {
            let ended = match self.client.delete(id).await {
                Err(error) if error.code() != Some(ErrorCode::NotFound) => Err(error),
                _ => Ok(()),
            };
            first = first.and(ended);
        }
        first
    }
}
