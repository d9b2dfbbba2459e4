//! The client of one gateway, and the way through it to agents.

mod address;
mod gate;

pub use address::{GatewayAddress, InvalidAddress};
pub(crate) use gate::Gate;

use std::sync::Arc;

use bytes::Bytes;
use glovebox_protocol::gateway::{
    CanaryPlan, CreateSandbox, Info, KeepReady, KeptReady, Preflight, SANDBOXES, SandboxList,
    SandboxView,
};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::sign::{BodyDigest, Credential, Epoch};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, StatusCode};
use serde::de::DeserializeOwned;

use crate::agent::{AgentClient, Identity};
use crate::body::RequestBody;
use crate::error::ClientError;
use crate::exchange::Link;
use crate::pool::{MAX_ANSWER, refusal};

/// What requests to a gateway are signed with and for.
#[derive(Debug, Clone)]
pub struct GatewayIdentity {
    /// One of the credentials that the gateway accepts.
    pub credential: Credential,
    /// The installation that it belongs to. `None`: whichever it says that it belongs to, which
    /// suits a person at a command line and no server.
    pub installation: Option<InstallationId>,
}

/// A client of one gateway. Clones share connections. All calls may be made at once.
#[derive(Clone)]
pub struct GatewayClient {
    gate: Arc<Gate>,
}

impl GatewayClient {
    /// A client that has not connected yet.
    #[must_use]
    pub fn new(identity: GatewayIdentity, address: GatewayAddress) -> Self {
        Self {
            gate: Arc::new(Gate::new(identity, address)),
        }
    }

    /// Which installation the gateway belongs to; asked for where it is not known yet.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn installation(&self) -> Result<InstallationId, ClientError> {
        self.gate.installation().await
    }

    /// What the gateway says of itself.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn info(&self) -> Result<Info, ClientError> {
        self.ask("GET", "/v1/info", Bytes::new()).await
    }

    /// What the gateway finds when it looks at its host.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn preflight(&self) -> Result<Preflight, ClientError> {
        self.ask("GET", "/v1/preflight", Bytes::new()).await
    }

    /// What a throwaway sandbox is to try to reach. The gateway's own targets are open from now
    /// on for as long as the plan says.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn canary_plan(&self) -> Result<CanaryPlan, ClientError> {
        self.ask("POST", "/v1/canary", Bytes::new()).await
    }

    /// Keeps these sandboxes ready from now on, and no others.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn keep_ready(&self, wanted: &KeepReady) -> Result<KeptReady, ClientError> {
        let body = serde_json::to_vec(wanted).map_err(ClientError::Answer)?;
        self.ask("PUT", "/v1/ready", body.into()).await
    }

    /// Makes a sandbox and waits until its agent answers. May be repeated with the same words:
    /// then it answers with the one sandbox.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn create(&self, wanted: &CreateSandbox) -> Result<SandboxView, ClientError> {
        let body = serde_json::to_vec(wanted).map_err(ClientError::Answer)?;
        self.ask("POST", SANDBOXES, body.into()).await
    }

    /// What is known of a sandbox: also of one that has ended, for a while.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn sandbox(&self, id: SandboxId) -> Result<SandboxView, ClientError> {
        let target = format!("{SANDBOXES}/{id}");
        self.ask("GET", &target, Bytes::new()).await
    }

    /// The sandboxes after `after`, in order.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn sandboxes(&self, after: Option<&str>) -> Result<SandboxList, ClientError> {
        let target = match after {
            None => SANDBOXES.into(),
            Some(after) => format!("{SANDBOXES}?after={after}"),
        };
        self.ask("GET", &target, Bytes::new()).await
    }

    /// Ends a sandbox and returns when nothing of it is left.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn delete(&self, id: SandboxId) -> Result<SandboxView, ClientError> {
        let target = format!("{SANDBOXES}/{id}");
        self.ask("DELETE", &target, Bytes::new()).await
    }

    /// A client of the agent in a sandbox, over the connections to the gateway. `epoch` is the
    /// agent's, where [`SandboxView::agent_epoch`] told it.
    #[must_use]
    pub fn agent(&self, identity: Identity, epoch: Option<Epoch>) -> AgentClient {
        AgentClient::over(Link::through(identity, Arc::clone(&self.gate), epoch))
    }

    /// One request and the document that answers it. Signed once more where the gateway turns
    /// out to be in another life than the one signed for.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        target: &str,
        body: Bytes,
    ) -> Result<T, ClientError> {
        let (length, sha256) = (body.len() as u64, BodyDigest::of(&body));
        let mut signed_anew = false;
        loop {
            let meant = self.gate.epoch();
            let mut request = Request::builder().method(method).uri(target);
            if length > 0 {
                request = request.header(CONTENT_TYPE, "application/json");
            }
            let request = request
                .header(HOST, "gateway")
                .body(RequestBody::Whole(Some(body.clone())))
                .map_err(ClientError::Request)?;
            let begun = self.gate.send(request, length, sha256).await?;
            if begun.status == StatusCode::OK {
                let body = begun.answer.whole(MAX_ANSWER).await?;
                return serde_json::from_slice(&body).map_err(ClientError::Answer);
            }
            let refusal = refusal(begun.answer).await;
            let is_another_life = self.gate.epoch() != meant;
            if begun.status != StatusCode::UNAUTHORIZED || !is_another_life || signed_anew {
                return Err(refusal);
            }
            signed_anew = true;
        }
    }
}
