//! Replies: documents of the gateway's own, and answers of agents as they come.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde::Serialize;

use crate::error::ApiError;
use crate::relay::AgentBody;

/// What a reply is made of.
pub(crate) enum ReplyBody {
    /// All of it.
    Whole(Option<Bytes>),
    /// An agent's, as it comes.
    Agent(Box<AgentBody>),
}

/// What a handler gives back.
pub(crate) type Reply = Result<Response<ReplyBody>, ApiError>;

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        match self.get_mut() {
            Self::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Agent(body) => Pin::new(&mut **body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_none(),
            Self::Agent(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => SizeHint::with_exact(body.as_ref().map_or(0, Bytes::len) as u64),
            Self::Agent(body) => body.size_hint(),
        }
    }
}

/// A document as the reply.
pub(crate) fn json(status: StatusCode, document: &impl Serialize) -> Response<ReplyBody> {
    // Only a map with keys that are no strings could fail, and no wire type has one.
    let bytes = serde_json::to_vec(document).unwrap_or_default();
    let mut response = Response::new(ReplyBody::Whole(Some(bytes.into())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// A document as the reply of a request that worked.
pub(crate) fn ok(document: &impl Serialize) -> Reply {
    Ok(json(StatusCode::OK, document))
}

/// An error as the reply.
pub(crate) fn failed(error: &ApiError) -> Response<ReplyBody> {
    let mut response = json(error.status, &error.body);
    if error.status == StatusCode::SERVICE_UNAVAILABLE {
        response
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
