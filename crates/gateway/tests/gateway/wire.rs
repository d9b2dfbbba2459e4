//! A client of a gateway, down to the single header.

use bytes::Bytes;
use glovebox_protocol::error::ErrorBody;
use glovebox_protocol::ids::{GatewayId, InstallationId, SandboxId};
use glovebox_protocol::sign::{
    BodyDigest, Credential, Envelope, Epoch, Nonce, SignedHeaders, SigningKey,
};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{HeaderMap, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::rig::now_ms;

/// Headers as name and value.
pub(crate) type Pairs = Vec<(&'static str, String)>;

/// Whoever signs for one gateway in one of its lives.
pub(crate) struct Sender {
    pub(crate) installation: InstallationId,
    pub(crate) gateway: GatewayId,
    pub(crate) epoch: Epoch,
    pub(crate) credential: Credential,
    /// What its clock is ahead of the system's, in milliseconds.
    pub(crate) ahead_ms: i64,
}

/// What a gateway answered.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// One connection to a gateway.
pub(crate) struct Wire(SendRequest<Full<Bytes>>);

impl Sender {
    /// The headers that a request to the gateway is signed with.
    pub(crate) fn outer(&self, method: &str, target: &str, body: &[u8]) -> Pairs {
        let audience = self.gateway.to_string();
        let mut envelope = self.envelope(&audience, (method, target), body);
        envelope.epoch = self.epoch;
        envelope.key = self.credential.id();
        envelope.unix_ms += self.ahead_ms;
        let signature = self.credential.sign(&envelope);
        headers(&envelope, signature).to_pairs().to_vec()
    }

    /// The headers that a request to an agent is signed with by `key`, but for the body's hash,
    /// which both signatures share.
    pub(crate) fn inner(
        &self,
        key: &SigningKey,
        (sandbox, epoch): (SandboxId, Epoch),
        route: (&str, &str),
        body: &[u8],
    ) -> Pairs {
        let audience = sandbox.to_string();
        let mut envelope = self.envelope(&audience, route, body);
        envelope.epoch = epoch;
        envelope.key = key.id();
        let pairs = headers(&envelope, key.sign(&envelope)).to_pairs();
        pairs
            .into_iter()
            .filter(|(name, _)| *name != "x-glovebox-content-sha256")
            .collect()
    }

    /// A request from now, for nobody yet.
    fn envelope<'a>(
        &self,
        audience: &'a str,
        (method, target): (&'a str, &'a str),
        body: &[u8],
    ) -> Envelope<'a> {
        Envelope {
            installation: self.installation,
            audience,
            epoch: self.epoch,
            method,
            path_and_query: target,
            content_length: body.len() as u64,
            body: BodyDigest::of(body),
            unix_ms: now_ms(),
            nonce: Nonce::random().unwrap(),
            key: self.credential.id(),
        }
    }
}

fn headers<S>(envelope: &Envelope<'_>, signature: S) -> SignedHeaders<S> {
    SignedHeaders {
        key: envelope.key,
        epoch: envelope.epoch,
        unix_ms: envelope.unix_ms,
        nonce: envelope.nonce,
        body: envelope.body,
        signature,
    }
}

impl Wire {
    /// A connection over a stream.
    pub(crate) async fn over<S>(stream: S) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self(sender)
    }

    /// Whether another request can be sent on it.
    pub(crate) fn is_open(&self) -> bool {
        !self.0.is_closed()
    }

    /// Sends a request and waits for the whole answer; the connection's failure is the error.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        target: &str,
        pairs: &[(&'static str, String)],
        body: &[u8],
    ) -> hyper::Result<Answer> {
        let response = self.begin(method, target, pairs, body).await?;
        let (parts, body) = response.into_parts();
        Ok(Answer {
            status: parts.status,
            headers: parts.headers,
            body: body.collect().await?.to_bytes(),
        })
    }

    /// Sends a request and waits for the head of its answer.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        target: &str,
        pairs: &[(&'static str, String)],
        body: &[u8],
    ) -> hyper::Result<Response<Incoming>> {
        let mut request = Request::builder().method(method).uri(target);
        request = request.header("host", "gateway");
        for (name, value) in pairs {
            request = request.header(*name, value);
        }
        let body = Full::new(Bytes::copy_from_slice(body));
        self.0.ready().await?;
        self.0.send_request(request.body(body).unwrap()).await
    }
}

impl Answer {
    pub(crate) fn document<T: DeserializeOwned>(&self) -> T {
        let text = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, StatusCode::OK, "{text}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The code of an error, as it stands in the answer.
    pub(crate) fn code(&self) -> String {
        let error = self.error();
        let code = serde_json::to_value(error.code).unwrap();
        code.as_str().unwrap().to_owned()
    }

    pub(crate) fn error(&self) -> ErrorBody {
        let text = String::from_utf8_lossy(&self.body);
        assert_ne!(self.status, StatusCode::OK, "{text}");
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}
