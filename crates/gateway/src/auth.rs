//! Who may ask: whoever holds a credential of this gateway. Decided from the request line and the
//! headers alone, before a byte of the body is read.

use std::time::Instant;

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::sign::{
    HeaderFault, KeyId, Now, Refusal, SignedHeaders, Verified, WARN_MS, gateway_names,
};
use http_body::Body as _;
use hyper::Response;
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;

use crate::error::ApiError;
use crate::reply::ReplyBody;
use crate::state::Shared;

/// A request that is whose it says it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) credential: KeyId,
    pub(crate) verified: Verified,
}

/// Checks protocol, installation and signature of one request.
pub(crate) fn authenticate(
    shared: &Shared,
    parts: &Parts,
    body: &Incoming,
) -> Result<Caller, ApiError> {
    check_words(shared, parts)?;
    let headers = SignedHeaders::<[u8; 32]>::parse(|name| {
        let values = parts.headers.get_all(name).into_iter();
        values.map(HeaderValue::as_bytes)
    })
    .map_err(|fault| {
        ApiError::unauthorized(match fault {
            HeaderFault::Missing(_) | HeaderFault::Doubled(_) => ErrorCode::AuthMissing,
            HeaderFault::Malformed(_) => ErrorCode::AuthRejected,
        })
    })?;
    // Without a transfer coding, which is refused before, the length is always known.
    let length = body.size_hint().exact().unwrap_or(u64::MAX);
    let target = parts.uri.path_and_query();
    let target = target.map_or("", |target| target.as_str());
    let now = Now {
        unix_ms: shared.now_ms(),
        steady: Instant::now(),
    };
    let method = parts.method.as_str();
    let verified = shared
        .verifier(|verifier| verifier.verify(method, target, length, &headers, now))
        .map_err(|refusal| match refusal {
            Refusal::Rejected => ApiError::unauthorized(ErrorCode::AuthRejected),
            Refusal::ClockSkew { off_ms } => ApiError::clock_skew(off_ms),
            Refusal::Replayed => ApiError::unauthorized(ErrorCode::Replayed),
        })?;
    Ok(Caller {
        credential: headers.key,
        verified,
    })
}

/// What a sender says of itself beside its signature, so that a mistake in setting things up is
/// told by its name. Nothing is believed for it.
fn check_words(shared: &Shared, parts: &Parts) -> Result<(), ApiError> {
    // The same thing twice can be read in two ways as soon as the two differ.
    for name in [gateway_names::PROTOCOL, gateway_names::INSTALLATION] {
        if parts.headers.get_all(name).into_iter().nth(1).is_some() {
            return Err(ApiError::invalid(format!(
                "the header `{name}` is given more than once"
            )));
        }
    }
    let protocol = parts.headers.get(gateway_names::PROTOCOL);
    let ours = glovebox_protocol::PROTOCOL_VERSION.to_string();
    if let Some(other) = protocol.filter(|value| value.as_bytes() != ours.as_bytes()) {
        let number = other.to_str().ok().filter(|text| text.len() <= 10);
        let number = number.filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
        return Err(ApiError::protocol_mismatch(number.unwrap_or("no number")));
    }
    let installation = parts.headers.get(gateway_names::INSTALLATION);
    let ours = shared.rules.installation.to_string();
    if installation.is_some_and(|value| value.as_bytes() != ours.as_bytes()) {
        return Err(ApiError::wrong_installation());
    }
    Ok(())
}

/// Says which gateway answers, and whether the sender's clock is off. A 401 also tells the present
/// boot epoch, so that the sender can sign anew.
pub(crate) fn sign_off(
    shared: &Shared,
    caller: Option<Caller>,
    mut reply: Response<ReplyBody>,
) -> Response<ReplyBody> {
    let is_refusal = reply.status() == hyper::StatusCode::UNAUTHORIZED;
    let is_own = matches!(reply.body(), ReplyBody::Whole(_));
    let headers = reply.headers_mut();
    let mut set = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    };
    if is_own {
        set(gateway_names::GATEWAY, shared.rules.gateway.to_string());
        if is_refusal {
            set(gateway_names::EPOCH, shared.epoch.to_string());
            set(
                gateway_names::INSTALLATION,
                shared.rules.installation.to_string(),
            );
        }
    }
    if let Some(caller) = caller
        && caller.verified.off_ms.abs() > WARN_MS
    {
        set(
            gateway_names::CLOCK_OFF_MS,
            caller.verified.off_ms.to_string(),
        );
    }
    reply
}
