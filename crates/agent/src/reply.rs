//! Bodies of replies: one document, or a row of chunks as they come.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use glovebox_protocol::frame;
use http_body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::activity::Use;
use crate::error::ApiError;

/// Chunks of one stream that may wait for a slow reader. With chunks of 64 KiB this bounds what
/// one execution holds in memory.
pub(crate) const CHUNKS_IN_FLIGHT: usize = 8;

/// What a reply is made of.
pub(crate) struct ReplyBody {
    content: Content,
    /// What counts as use until it is sent.
    in_use: Option<Use>,
}

enum Content {
    /// All of it.
    Whole(Option<Bytes>),
    /// As it comes.
    Stream(mpsc::Receiver<Bytes>),
}

impl ReplyBody {
    /// Counts as use of the sandbox until it has been sent.
    pub(crate) fn hold(&mut self, in_use: Option<Use>) {
        self.in_use = in_use;
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.get_mut().content {
            Content::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Content::Stream(chunks) => chunks
                .poll_recv(context)
                .map(|chunk| chunk.map(|chunk| Ok(Frame::data(chunk)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(body) => {
                SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64)
            }
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

/// What a handler gives back.
pub(crate) type Reply = Result<Response<ReplyBody>, ApiError>;

/// A document as the reply.
pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Response<ReplyBody> {
    // Only a map with keys that are no strings could fail, and no wire type has one.
    let bytes = serde_json::to_vec(document).unwrap_or_default();
    with_type(
        status,
        "application/json",
        Content::Whole(Some(bytes.into())),
    )
}

/// A document as the reply of a request that worked.
pub(crate) fn ok(document: &impl Serialize) -> Reply {
    Ok(json(StatusCode::OK, document))
}

/// A row of frames as the reply, fed through the returned sender.
pub(crate) fn frames() -> (mpsc::Sender<Bytes>, Response<ReplyBody>) {
    let (sender, chunks) = mpsc::channel(CHUNKS_IN_FLIGHT);
    let reply = with_type(StatusCode::OK, frame::MEDIA_TYPE, Content::Stream(chunks));
    (sender, reply)
}

fn with_type(
    status: StatusCode,
    media_type: &'static str,
    content: Content,
) -> Response<ReplyBody> {
    let mut response = Response::new(ReplyBody {
        content,
        in_use: None,
    });
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
