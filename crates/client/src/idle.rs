//! Connections to one place that nobody uses at the moment, kept for the next request.

use std::sync::Mutex;
use std::time::Duration;

use http_body::Body;
use hyper::body::Incoming;
use hyper::{Request, Response};
use tokio::time::Instant;

use crate::channel::Channel;
use crate::pool::lock;

/// Connections that are kept for later at most.
const MAX_IDLE: usize = 8;

/// How long one is kept. Agents and gateways close those that have been silent for two minutes, and
/// one that is closed while a request is on its way takes the request with it.
const MAX_IDLE_TIME: Duration = Duration::from_secs(60);

/// The idle connections to one place.
pub struct Idle<B: Body + 'static>(Mutex<Kept<B>>);

struct Kept<B: Body + 'static> {
    /// Since when each is kept; the latest last.
    channels: Vec<(Channel<B>, Instant)>,
    is_closed: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered<E> {
    /// There is no connection.
    Connect(E),
    /// What was wrong with the connection that the request went out on.
    Transport(hyper::Error),
}

impl<B: Body + 'static> Default for Idle<B> {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            channels: Vec::new(),
            is_closed: false,
        }))
    }
}

impl<B> Idle<B>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// Sends a request and waits for the head of its answer. One that a kept connection did not even
    /// begin to send goes out on another, and at last on the new one that `connect` opens.
    ///
    /// # Errors
    /// See [`Unanswered`].
    pub async fn send<E>(
        &self,
        mut request: Request<B>,
        connect: impl Future<Output = Result<Channel<B>, E>>,
    ) -> Result<(Response<Incoming>, Channel<B>), Unanswered<E>> {
        while let Some(mut channel) = self.take() {
            match channel.send(request).await {
                Ok(response) => return Ok((response, channel)),
                Err(mut failed) => match failed.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(Unanswered::Transport(failed.into_error())),
                },
            }
        }
        let mut channel = connect.await.map_err(Unanswered::Connect)?;
        match channel.send(request).await {
            Ok(response) => Ok((response, channel)),
            Err(failed) => Err(Unanswered::Transport(failed.into_error())),
        }
    }

    /// The connection that was used last, if it can be used again.
    fn take(&self) -> Option<Channel<B>> {
        let mut kept = lock(&self.0);
        let (channel, since) = kept.channels.pop()?;
        if since.elapsed() < MAX_IDLE_TIME {
            return Some(channel);
        }
        // The others have been kept for longer still.
        kept.channels.clear();
        None
    }

    /// Keeps a connection for the next request.
    pub fn put(&self, channel: Channel<B>) {
        let mut kept = lock(&self.0);
        if !kept.is_closed && kept.channels.len() < MAX_IDLE {
            kept.channels.push((channel, Instant::now()));
        }
    }

    /// Closes those that are kept, and keeps none any more.
    pub fn close(&self) {
        let mut kept = lock(&self.0);
        kept.is_closed = true;
        kept.channels.clear();
    }

    /// Closes those that have been kept for long.
    pub fn close_old(&self) {
        let mut kept = lock(&self.0);
        kept.channels
            .retain(|(_, since)| since.elapsed() < MAX_IDLE_TIME);
    }
}
