//! One connection, moved on by whoever uses it.
//!
//! There is no task beside it: in a runtime with several threads each request would pass from
//! thread to thread twice, which takes longer than a small request itself.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use crate::body::RequestBody;
use crate::connect::ByteStream;
use crate::error::ClientError;

type Wire = Connection<TokioIo<Box<dyn ByteStream>>, RequestBody>;

/// A connection. Dropped it is closed.
pub(crate) struct Channel {
    sender: SendRequest<RequestBody>,
    /// Gone once it has come to its end.
    wire: Option<Pin<Box<Wire>>>,
}

impl Channel {
    /// A connection over a byte stream.
    pub(crate) async fn open(stream: Box<dyn ByteStream>) -> Result<Self, ClientError> {
        let (sender, wire) = handshake(TokioIo::new(stream))
            .await
            .map_err(ClientError::Transport)?;
        Ok(Self {
            sender,
            wire: Some(Box::pin(wire)),
        })
    }

    /// Whether another request can be sent on it, as far as is known.
    pub(crate) fn is_open(&self) -> bool {
        self.wire.is_some() && !self.sender.is_closed()
    }

    /// Sends a request and waits for the head of its answer. A request that did not even begin to
    /// be sent is in the error.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, TrySendError<Request<RequestBody>>> {
        let sender = &mut self.sender;
        let sent = async {
            // That it cannot take one shows in the attempt, which gives the request back.
            let _ = sender.ready().await;
            sender.try_send_request(request).await
        };
        drive(&mut self.wire, sent).await
    }

    /// The next part of a body that holds bytes; nothing at its end.
    pub(crate) async fn chunk(
        &mut self,
        body: &mut Incoming,
    ) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = drive(&mut self.wire, body.frame()).await {
            if let Ok(chunk) = frame.map_err(ClientError::Transport)?.into_data() {
                return Ok(Some(chunk));
            }
        }
        Ok(None)
    }

    /// A body from its first byte to its last, unless it is too long.
    pub(crate) async fn whole(
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
}

/// Does `work`, which waits for what comes over the connection or goes out on it.
async fn drive<T>(wire: &mut Option<Pin<Box<Wire>>>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| {
        if let Poll::Ready(done) = work.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        // What breaks a connection shows in the request that is on it.
        if let Some(connection) = wire
            && connection.as_mut().poll(context).is_ready()
        {
            *wire = None;
        }
        work.as_mut().poll(context)
    })
    .await
}
