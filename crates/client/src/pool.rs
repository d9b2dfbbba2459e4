//! Connections to one place, kept and used again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use glovebox_protocol::error::ErrorBody;
use hyper::body::Incoming;
use hyper::{HeaderMap, Request, StatusCode};
use tokio::time::Instant;

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

/// The connections to one agent, or to one gateway and all agents behind it.
pub(crate) struct Pool {
    connector: Box<dyn Connector>,
    /// Those that are kept, and since when; the latest last.
    idle: Mutex<Vec<(Channel, Instant)>>,
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
    channel: Channel,
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
            let mut idle = lock(&self.pool.idle);
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

impl Pool {
    pub(crate) fn new(connector: Box<dyn Connector>) -> Arc<Self> {
        Arc::new(Self {
            connector,
            idle: Mutex::default(),
        })
    }

    /// Sends a request. One that a kept connection did not even begin to send goes out on a new
    /// one.
    pub(crate) async fn send(
        self: &Arc<Self>,
        mut request: Request<RequestBody>,
    ) -> Result<Begun, ClientError> {
        loop {
            let kept = self.kept();
            let is_kept = kept.is_some();
            let mut channel = match kept {
                Some(channel) => channel,
                None => self.connect().await?,
            };
            match channel.send(request).await {
                Ok(response) => {
                    let (head, body) = response.into_parts();
                    return Ok(Begun {
                        status: head.status,
                        headers: head.headers,
                        answer: Answer {
                            body,
                            channel,
                            pool: Arc::clone(self),
                        },
                    });
                }
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

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // Nothing that holds one of these can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
