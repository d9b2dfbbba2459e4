//! Connections to one place, kept and used again.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use glovebox_protocol::error::ErrorBody;
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, StatusCode};

use crate::body::RequestBody;
use crate::channel::Channel;
use crate::connect::Connector;
use crate::error::ClientError;
use crate::idle::{Idle, Unanswered};

/// Longest answer that is no stream, in bytes.
pub(crate) const MAX_ANSWER: u64 = 16 * 1024 * 1024;

/// Room for reading and writing on one connection, in bytes.
pub(crate) const ROOM_BYTES: usize = 400 * 1024;

/// The connections to one agent, or to one gateway and all agents behind it.
pub(crate) struct Pool {
    connector: Box<dyn Connector>,
    idle: Idle<RequestBody>,
}

/// The beginning of an answer.
pub(crate) struct Begun {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) answer: Answer,
}

/// An answer whose body is still to be read. Dropped early it closes the connection, and so
/// tells the other side that nobody reads.
pub(crate) struct Answer {
    body: Incoming,
    channel: Channel<RequestBody>,
    pool: Arc<Pool>,
}

impl Answer {
    /// The next part of the body that holds bytes; nothing at its end.
    pub(crate) async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.channel.chunk(&mut self.body).await
    }

    /// Gives the connection back; to be called when the whole body was read.
    pub(crate) fn done(self) {
        if self.channel.is_open() {
            self.pool.idle.put(self.channel);
        }
    }

    /// The whole body.
    pub(crate) async fn whole(mut self, limit_bytes: u64) -> Result<Bytes, ClientError> {
        let body = self.channel.whole(&mut self.body, limit_bytes).await?;
        self.done();
        Ok(body)
    }
}

impl Pool {
    pub(crate) fn new(connector: Box<dyn Connector>) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Idle::default(),
        })
    }

    /// Sends a request, on a connection that is kept if there is one.
    pub(crate) async fn send(
        self: &Arc<Self>,
        request: Request<RequestBody>,
    ) -> Result<Begun, ClientError> {
        let sent = self.idle.send(request, self.connect()).await;
        let (response, channel) = sent.map_err(|unanswered| match unanswered {
            Unanswered::Connect(error) => error,
            Unanswered::Transport(error) => ClientError::Transport(error),
        })?;
        let (head, body) = response.into_parts();
        Ok(Begun {
            status: head.status,
            headers: head.headers,
            answer: Answer {
                body,
                channel,
                pool: Arc::clone(self),
            },
        })
    }

    async fn connect(&self) -> Result<Channel<RequestBody>, ClientError> {
        let stream = self.connector.connect().await;
        let stream = stream.map_err(ClientError::Connect)?;
        let opened = Channel::open(stream, ROOM_BYTES).await;
        opened.map_err(ClientError::Transport)
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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing that holds one of these can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
