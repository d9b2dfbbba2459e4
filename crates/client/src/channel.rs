//! One connection, moved on by whoever uses it.
//!
//! There is no task beside it: in a runtime with several threads each request would pass from
//! thread to thread twice, which takes longer than a small request itself. Nor is there a buffer
//! between.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::connect::ByteStream;
use crate::error::ClientError;

type Wire<B> = Connection<TokioIo<Box<dyn ByteStream>>, B>;

/// A connection on which requests with bodies of this kind are sent. Dropped it is closed.
pub struct Channel<B: Body + 'static> {
    sender: SendRequest<B>,
    /// Gone once it has come to its end.
    wire: Option<Pin<Box<Wire<B>>>>,
}

impl<B> Channel<B>
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    /// A connection over a byte stream, with so much room for reading and writing.
    ///
    /// # Errors
    /// When nothing can be sent on it.
    pub async fn open(stream: Box<dyn ByteStream>, room_bytes: usize) -> hyper::Result<Self> {
        let (sender, wire) = Builder::new()
            .max_buf_size(room_bytes)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            sender,
            wire: Some(Box::pin(wire)),
        })
    }

    /// Whether another request can be sent on it once it has nothing to do, as far as is known.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.wire.is_some() && !self.sender.is_closed()
    }

    /// Whether it has nothing to do and another request can be sent on it, as far as is known.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.wire.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer.
    ///
    /// # Errors
    /// What is wrong with the connection. A request that did not even begin to be sent is in the
    /// error.
    pub async fn send(
        &mut self,
        request: Request<B>,
    ) -> Result<Response<Incoming>, TrySendError<Request<B>>> {
        let sender = &mut self.sender;
        let wire = &mut self.wire;
        let sent = async {
            // That it cannot take one shows in the attempt, which gives the request back.
            let _ = sender.ready().await;
            sender.try_send_request(request).await
        };
        let mut sent = pin!(sent);
        poll_fn(|context| {
            if let Poll::Ready(done) = sent.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            drive(wire, context);
            sent.as_mut().poll(context)
        })
        .await
    }

    /// The next frame of an answer's body.
    pub fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        let next = Pin::new(&mut *body).poll_frame(context);
        if next.is_ready() {
            return next;
        }
        drive(&mut self.wire, context);
        Pin::new(body).poll_frame(context)
    }

    /// The next part of a body that holds bytes; nothing at its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn chunk(&mut self, body: &mut Incoming) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = poll_fn(|context| self.poll_frame(body, context)).await {
            if let Ok(chunk) = frame.map_err(ClientError::Transport)?.into_data() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// A body from its first byte to its last.
    ///
    /// # Errors
    /// When it is longer than `limit_bytes`, or the connection breaks.
    pub async fn whole(
        &mut self,
        body: &mut Incoming,
        limit_bytes: u64,
    ) -> Result<Bytes, ClientError> {
        let mut chunks = Vec::new();
        let mut length = 0;
        while let Some(chunk) = self.chunk(body).await? {
            length += chunk.len() as u64;
            if length > limit_bytes {
                return Err(ClientError::TooLong { limit_bytes });
            }
            chunks.push(chunk);
        }
        Ok(match <[Bytes; 1]>::try_from(chunks) {
            Ok([only]) => only,
            Err(chunks) => chunks.concat().into(),
        })
    }

    /// Lets the connection take notice of what is over.
    pub fn settle(&mut self, context: &mut Context<'_>) {
        drive(&mut self.wire, context);
    }
}

/// What breaks a connection shows in the request that is on it.
fn drive<B>(wire: &mut Option<Pin<Box<Wire<B>>>>, context: &mut Context<'_>)
where
    B: Body + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    if let Some(connection) = wire
        && connection.as_mut().poll(context).is_ready()
    {
        *wire = None;
    }
}
