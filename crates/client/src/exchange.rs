//! One signed request to an agent and its answer, straight or through a gateway.

use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use glovebox_protocol::gateway::{AGENT, SANDBOXES};
use glovebox_protocol::sign::{BodyDigest, Envelope, Epoch, Nonce, SignedHeaders, names};
use hyper::header::HOST;
use hyper::{HeaderMap, Request, StatusCode};

use crate::agent::Identity;
use crate::body::RequestBody;
use crate::connect::Connector;
use crate::error::ClientError;
use crate::gateway::Gate;
use crate::pool::{Answer, Pool, lock};

/// What all clones of a client share.
pub(crate) struct Link {
    identity: Identity,
    way: Way,
    epoch: Mutex<Option<Epoch>>,
}

/// How requests come to the agent.
enum Way {
    /// Over connections of its own.
    Straight(Arc<Pool>),
    /// Over those to a gateway, which passes them on.
    Through(Arc<Gate>),
}

/// The request line as the agent sees it, and what is known of the body before it is sent.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) length: u64,
    pub(crate) sha256: BodyDigest,
}

/// For whom a request was signed: which lives of the receivers were meant.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meant {
    agent: Option<Epoch>,
    gateway: Option<Epoch>,
}

impl Link {
    pub(crate) fn straight(identity: Identity, connector: Box<dyn Connector>) -> Self {
        Self {
            identity,
            way: Way::Straight(Pool::new(connector)),
            epoch: Mutex::default(),
        }
    }

    pub(crate) fn through(identity: Identity, gate: Arc<Gate>, epoch: Option<Epoch>) -> Self {
        Self {
            identity,
            way: Way::Through(gate),
            epoch: Mutex::new(epoch),
        }
    }

    /// The agent's epoch that requests are signed for, if one is known.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        *lock(&self.epoch)
    }

    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        *lock(&self.epoch) = Some(epoch);
    }

    /// Which lives a request that is signed now is meant for.
    pub(crate) fn meant(&self) -> Meant {
        Meant {
            agent: self.epoch(),
            gateway: match &self.way {
                Way::Straight(_) => None,
                Way::Through(gate) => gate.epoch(),
            },
        }
    }

    /// Signs a request to the agent for one epoch.
    pub(crate) fn sign(
        &self,
        head: Head<'_>,
        epoch: Epoch,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, ClientError> {
        let audience = self.identity.sandbox.to_string();
        let key = &self.identity.key;
        let envelope = Envelope {
            installation: self.identity.installation,
            audience: &audience,
            epoch,
            method: head.method,
            path_and_query: head.target,
            content_length: head.length,
            body: head.sha256,
            unix_ms: now_ms(),
            nonce: Nonce::random()?,
            key: key.id(),
        };
        let headers = SignedHeaders {
            key: key.id(),
            epoch,
            unix_ms: envelope.unix_ms,
            nonce: envelope.nonce,
            body: head.sha256,
            signature: key.sign(&envelope),
        };
        let mut request = Request::builder()
            .method(head.method)
            .uri(self.address(head.target));
        for (name, value) in headers.to_pairs() {
            request = request.header(name, value);
        }
        request
            .header(HOST, "agent")
            .body(body)
            .map_err(ClientError::Request)
    }

    /// The agent's own target as it stands in the request line.
    pub(crate) fn address(&self, target: &str) -> String {
        match &self.way {
            Way::Straight(_) => target.into(),
            Way::Through(_) => format!("{SANDBOXES}/{}{AGENT}{target}", self.identity.sandbox),
        }
    }

    /// Sends a request whose target is as [`Link::address`] makes it.
    pub(crate) async fn send(
        &self,
        request: Request<RequestBody>,
        head: Head<'_>,
    ) -> Result<(StatusCode, Answer), ClientError> {
        let begun = match &self.way {
            Way::Straight(pool) => pool.send(request).await?,
            Way::Through(gate) => gate.send(request, head.length, head.sha256).await?,
        };
        if begun.status == StatusCode::UNAUTHORIZED
            && let Some(epoch) = told(&begun.headers, names::EPOCH)
        {
            self.set_epoch(epoch);
        }
        Ok((begun.status, begun.answer))
    }
}

/// What a header says, where it stands there and is well-formed.
pub(crate) fn told<T: std::str::FromStr>(headers: &HeaderMap, name: &str) -> Option<T> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// The time, in milliseconds since 1970 (UTC).
pub(crate) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
