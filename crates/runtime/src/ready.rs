//! From a runtime to the agent in one of its sandboxes.

use std::sync::Arc;

use glovebox_client::{Connecting, Connector};
use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::Epoch;

use crate::{AgentStream, Cause, Runtime};

/// Waits for the first answer of a sandbox's agent, and checks that it speaks our protocol. Gives
/// the agent's boot epoch.
///
/// # Errors
/// When the stream ends before an answer, or the agent speaks another protocol.
pub async fn agent_answers(stream: Box<dyn AgentStream>) -> Result<Epoch, Cause> {
    let health = glovebox_client::first_health(stream).await?;
    if health.protocol == PROTOCOL_VERSION {
        Ok(health.epoch)
    } else {
        Err(glovebox_client::ClientError::ProtocolMismatch {
            theirs: health.protocol,
        }
        .into())
    }
}

/// Opens streams to the agent of one sandbox, for a [`glovebox_client::AgentClient`].
#[derive(Clone)]
pub struct AgentConnector {
    /// The runtime that the sandbox is in.
    pub runtime: Arc<dyn Runtime>,
    /// Which sandbox.
    pub sandbox: SandboxId,
}

impl Connector for AgentConnector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async {
            self.runtime
                .connect(self.sandbox)
                .await
                .map_err(std::io::Error::other)
        })
    }
}
