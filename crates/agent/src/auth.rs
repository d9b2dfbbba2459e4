//! Who may command: whoever holds a key that the agent was started with. Decided from the
//! request line and the headers alone, before a byte of the body is read.

use std::time::Instant;

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::sign::{HeaderFault, Now, Refusal, SignedHeaders, Verified, names};
use http_body::Body as _;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;

use crate::claimed::Claimed;
use crate::error::ApiError;
use crate::reply::ReplyBody;
use crate::shared::Shared;

/// Checks the signature of one request.
pub(crate) fn authenticate(
    shared: &Shared,
    claimed: &Claimed,
    parts: &Parts,
    body: &Incoming,
) -> Result<Verified, ApiError> {
    let headers = SignedHeaders::parse(|name| {
        parts
            .headers
            .get_all(name)
            .into_iter()
            .map(HeaderValue::as_bytes)
    })
    .map_err(|fault| {
        ApiError::unauthorized(match fault {
            HeaderFault::Missing(_) | HeaderFault::Doubled(_) => ErrorCode::AuthMissing,
            HeaderFault::Malformed(_) => ErrorCode::AuthRejected,
        })
    })?;
    // Without a transfer coding, which is refused before, the length is always known.
    let length = body.size_hint().exact().unwrap_or(u64::MAX);
    let target = parts
        .uri
        .path_and_query()
        .map_or("", |target| target.as_str());
    let now = Now {
        unix_ms: (shared.clock)(),
        steady: Instant::now(),
    };
    claimed
        .verifier
        .with(|verifier| verifier.verify(parts.method.as_str(), target, length, &headers, now))
        .map_err(|refusal| {
            ApiError::unauthorized(match refusal {
                Refusal::Rejected => ErrorCode::AuthRejected,
                Refusal::ClockSkew { .. } => ErrorCode::ClockSkew,
                Refusal::Replayed => ErrorCode::Replayed,
            })
        })
}

/// Tells the present boot epoch, so that the sender can sign anew.
pub(crate) fn with_epoch(shared: &Shared, mut reply: Response<ReplyBody>) -> Response<ReplyBody> {
    if let Ok(epoch) = HeaderValue::from_str(&shared.epoch.to_string()) {
        reply.headers_mut().insert(names::EPOCH, epoch);
    }
    reply
}
