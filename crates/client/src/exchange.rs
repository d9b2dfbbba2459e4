//! One signed request and its answer, over connections that are kept and used again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use glovebox_protocol::error::ErrorBody;
use glovebox_protocol::sign::{BodyDigest, Envelope, Epoch, Nonce, SignedHeaders, names};
use hyper::body::Incoming;
use hyper::header::HOST;
use hyper::{Request, Response, StatusCode};
use tokio::time::Instant;

use crate::agent::Identity;
use crate::body::RequestBody;
use crate::channel::Channel;
use crate::connect::Connector;
use crate::error::ClientError;

/// Longest answer that is no stream, in bytes.
pub(crate) const MAX_ANSWER: u64 = 16 * 1024 * 1024;

/// Connections that are kept for later at most.
const MAX_IDLE: usize = 8;

/// How long one is kept. An agent closes those that have been silent for two minutes, and one
/// that is closed while a request is on its way takes the request with it.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);

/// What all clones of a client share.
pub(crate) struct Link {
    identity: Identity,
    connector: Box<dyn Connector>,
    /// Those that are kept, and since when; the latest last.
    idle: Mutex<Vec<(Channel, Instant)>>,
    epoch: Mutex<Option<Epoch>>,
}

/// An answer whose body is still to be read. Dropped early it closes the connection, and so
/// tells the agent that nobody reads.
pub(crate) struct Answer {
    body: Incoming,
    channel: Channel,
    link: Arc<Link>,
}

impl Answer {
    /// The next part of the body that holds bytes; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.channel.chunk(&mut self.body).await
    }

    /// Gives the connection back; to be called when the whole body was read.
    pub(crate) fn done(self) {
        if self.channel.is_open() {
            let mut idle = lock(&self.link.idle);
            if idle.len() < MAX_IDLE {
                idle.push((self.channel, Instant::now()));
            }
        }
    }

    /// The whole body.
    pub(crate) async fn whole(mut self, limit_bytes: u64) -> Result<Bytes, ClientError> {
        let body = self.channel.whole(&mut self.body, limit_bytes).await?;
        self.done();
        Ok(body)
    }
}

/// The request line and what is known of the body before it is sent.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) length: u64,
    pub(crate) sha256: BodyDigest,
}

impl Link {
    pub(crate) fn new(identity: Identity, connector: Box<dyn Connector>) -> Self {
        Self {
            identity,
            connector,
            idle: Mutex::default(),
            epoch: Mutex::default(),
        }
    }

    /// The epoch that requests are signed for, if one is known.
    pub(crate) fn epoch(&self) -> Option<Epoch> {
        *lock(&self.epoch)
    }

    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        *lock(&self.epoch) = Some(epoch);
    }

    /// Signs a request for one epoch.
    pub(crate) fn sign(
        &self,
        head: Head<'_>,
        epoch: Epoch,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, ClientError> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let unix_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
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
            unix_ms,
            nonce: Nonce::random()?,
            key: key.id(),
        };
        let headers = SignedHeaders {
            key: key.id(),
            epoch,
            unix_ms,
            nonce: envelope.nonce,
            body: head.sha256,
            signature: key.sign(&envelope),
        };
        let mut request = Request::builder().method(head.method).uri(head.target);
        for (name, value) in headers.to_pairs() {
            request = request.header(name, value);
        }
        request
            .header(HOST, "agent")
            .body(body)
            .map_err(ClientError::Request)
    }

    /// Sends a request. One that a kept connection did not even begin to send goes out on a new
    /// one.
    pub(crate) async fn send(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<(StatusCode, Answer), ClientError> {
        loop {
            let kept = self.kept();
            let is_kept = kept.is_some();
            let mut channel = match kept {
                Some(channel) => channel,
                None => self.connect().await?,
            };
            match channel.send(request).await {
                Ok(response) => return self.accept(channel, response),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) if is_kept => request = unsent,
                    _ => return Err(ClientError::Transport(failed.into_error())),
                },
            }
        }
    }

    /// The connection that was used last, if it can be used again.
    fn kept(&self) -> Option<Channel> {
        let mut idle = lock(&self.idle);
        let (channel, _) = idle
            .pop()
            .filter(|(_, since)| since.elapsed() < MAX_IDLE_TIME)
            .or_else(|| {
                // The others have been kept for longer still.
                idle.clear();
                None
            })?;
        Some(channel)
    }

    fn accept(
        self: &Arc<Self>,
        channel: Channel,
        response: Response<Incoming>,
    ) -> Result<(StatusCode, Answer), ClientError> {
        let status = response.status();
        if status == StatusCode::UNAUTHORIZED
            && let Some(epoch) = response.headers().get(names::EPOCH)
            && let Some(epoch) = epoch.to_str().ok().and_then(|text| text.parse().ok())
        {
            self.set_epoch(epoch);
        }
        let answer = Answer {
            body: response.into_body(),
            channel,
            link: Arc::clone(self),
        };
        Ok((status, answer))
    }

    async fn connect(&self) -> Result<Channel, ClientError> {
        let stream = self.connector.connect().await;
        Channel::open(stream.map_err(ClientError::Connect)?).await
    }
}

/// What an answer says when it is no success.
pub(crate) async fn refusal(answer: Answer) -> ClientError {
    match answer.whole(MAX_ANSWER).await {
        Ok(body) => match serde_json::from_slice::<ErrorBody>(&body) {
            Ok(body) => ClientError::Refused(Box::new(body)),
            Err(error) => ClientError::Answer(error),
        },
        Err(error) => error,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing that holds one of these can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
