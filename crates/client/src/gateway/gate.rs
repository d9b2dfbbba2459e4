//! The signed way to one gateway, which its own client and those of agents behind it share.

use std::sync::{Arc, Mutex};

use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_protocol::ids::{GatewayId, InstallationId};
use glovebox_protocol::sign::{BodyDigest, Envelope, Epoch, Nonce, SignedHeaders, gateway_names};
use hyper::header::{HOST, HeaderName, HeaderValue};
use hyper::{HeaderMap, Request, StatusCode};

use super::{GatewayAddress, GatewayIdentity};
use crate::body::RequestBody;
use crate::error::ClientError;
use crate::exchange::{now_ms, told};
use crate::pool::{Begun, Pool, lock};

/// Most bytes of an answer that only its head matters of.
const MAX_LOST: u64 = 64 * 1024;

/// Whom requests are signed for.
#[derive(Clone, Copy)]
struct Known {
    gateway: GatewayId,
    epoch: Epoch,
    installation: InstallationId,
}

/// The way to one gateway.
pub(crate) struct Gate {
    identity: GatewayIdentity,
    pool: Arc<Pool>,
    known: Mutex<Option<Known>>,
}

impl Gate {
    pub(crate) fn new(identity: GatewayIdentity, address: GatewayAddress) -> Self {
        Self {
            identity,
            pool: Pool::new(Box::new(address)),
            known: Mutex::default(),
        }
    }

    /// The gateway's epoch that requests are signed for, if one is known.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        lock(&self.known).map(|known| known.epoch)
    }

    /// Which installation the gateway is addressed as one of.
    pub(crate) async fn installation(&self) -> Result<InstallationId, ClientError> {
        match self.identity.installation {
            Some(installation) => Ok(installation),
            None => Ok(self.known().await?.installation),
        }
    }

    /// Signs a request, whatever it carries for others, and sends it.
    pub(crate) async fn send(
        &self,
        mut request: Request<RequestBody>,
        length: u64,
        sha256: BodyDigest,
    ) -> Result<Begun, ClientError> {
        let known = self.known().await?;
        let audience = known.gateway.to_string();
        let credential = &self.identity.credential;
        let target = request.uri().path_and_query();
        let envelope = Envelope {
            installation: known.installation,
            audience: &audience,
            epoch: known.epoch,
            method: request.method().as_str(),
            path_and_query: target.map_or("", |target| target.as_str()),
            content_length: length,
            body: sha256,
            unix_ms: now_ms(),
            nonce: Nonce::random()?,
            key: credential.id(),
        };
        let signed = SignedHeaders {
            key: credential.id(),
            epoch: known.epoch,
            unix_ms: envelope.unix_ms,
            nonce: envelope.nonce,
            body: sha256,
            signature: credential.sign(&envelope),
        };
        let more = [
            (gateway_names::INSTALLATION, known.installation.to_string()),
            (gateway_names::PROTOCOL, PROTOCOL_VERSION.to_string()),
        ];
        for (name, value) in signed.to_pairs().into_iter().chain(more) {
            let value = HeaderValue::try_from(value);
            let value = value.map_err(|error| ClientError::Request(error.into()))?;
            // The body's hash may stand there already, for the agent: it is the same.
            request
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
        let begun = self.pool.send(request).await?;
        if begun.status == StatusCode::UNAUTHORIZED
            && let Some(known) = self.read(&begun.headers)
        {
            *lock(&self.known) = Some(known);
        }
        Ok(begun)
    }

    /// Whom to sign for. Asked, unsigned, where it is not known: the refusal says it.
    async fn known(&self) -> Result<Known, ClientError> {
        if let Some(known) = *lock(&self.known) {
            return Ok(known);
        }
        let request = Request::get("/v1/info")
            .header(HOST, "gateway")
            .body(RequestBody::Whole(None))
            .map_err(ClientError::Request)?;
        let begun = self.pool.send(request).await?;
        let known = self.read(&begun.headers);
        let no_gateway = |what| ClientError::NoGateway { what };
        if begun.status != StatusCode::UNAUTHORIZED {
            return Err(no_gateway("it does not refuse an unsigned request"));
        }
        let known = known.ok_or_else(|| no_gateway("its refusal does not say whom to sign for"))?;
        begun.answer.whole(MAX_LOST).await?;
        *lock(&self.known) = Some(known);
        Ok(known)
    }

    /// What a refusal of the gateway says of it. One of an agent's, passed on, says nothing.
    fn read(&self, headers: &HeaderMap) -> Option<Known> {
        let says = told(headers, gateway_names::INSTALLATION);
        Some(Known {
            gateway: told(headers, gateway_names::GATEWAY)?,
            epoch: told(headers, gateway_names::EPOCH)?,
            installation: self.identity.installation.or(says)?,
        })
    }
}
