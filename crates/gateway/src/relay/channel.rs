//! One connection to an agent, moved on by whoever uses it: no task stands beside it, and so no
//! buffer between.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use http_body::{Body as _, Frame};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;

use glovebox_runtime::AgentStream;

use super::AgentRequest;

/// Room for writing and reading on one connection, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

type Wire = Connection<TokioIo<Box<dyn AgentStream>>, AgentRequest>;

/// A connection to an agent. Dropped it is closed.
pub(crate) struct Channel {
    sender: SendRequest<AgentRequest>,
    /// Gone once it has come to its end.
    wire: Option<Pin<Box<Wire>>>,
}

impl Channel {
    /// A connection over a byte stream.
    pub(crate) async fn open(stream: Box<dyn AgentStream>) -> hyper::Result<Self> {
        let (sender, wire) = http1::Builder::new()
            .max_buf_size(BUFFER_BYTES)
            .handshake(TokioIo::new(stream))
            .await?;
        Ok(Self {
            sender,
            wire: Some(Box::pin(wire)),
        })
    }

    /// Whether it has nothing to do and another request can be sent on it, as far as is known.
    pub(crate) fn is_usable(&self) -> bool {
        self.wire.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the head of its answer. A request that did not even begin to
    /// be sent is in the error.
    pub(crate) async fn send(
        &mut self,
        request: Request<AgentRequest>,
    ) -> Result<Response<Incoming>, TrySendError<Request<AgentRequest>>> {
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
    pub(crate) fn poll_frame(
        &mut self,
        body: &mut Incoming,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let next = Pin::new(&mut *body).poll_frame(context);
        if next.is_ready() {
            return next;
        }
        drive(&mut self.wire, context);
        Pin::new(body).poll_frame(context)
    }

    /// Lets the connection take notice of what is over.
    pub(crate) fn settle(&mut self, context: &mut Context<'_>) {
        drive(&mut self.wire, context);
    }
}

/// What breaks a connection shows in the request that is on it.
fn drive(wire: &mut Option<Pin<Box<Wire>>>, context: &mut Context<'_>) {
    if let Some(connection) = wire
        && connection.as_mut().poll(context).is_ready()
    {
        *wire = None;
    }
}
