//! How a request fails: one type, with named constructors, and its form as a reply.

use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::mebibytes;
use hyper::StatusCode;

/// Why a request was not fulfilled.
#[derive(Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) body: Box<ErrorBody>,
}

impl ApiError {
    fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            status,
            body: Box::new(ErrorBody::new(code, message)),
        }
    }

    /// 401 in one of its four forms; the words are the same for every fault of one form.
    pub(crate) fn unauthorized(code: ErrorCode) -> Self {
        let message = match code {
            ErrorCode::AuthMissing => "the request is not signed, or not in the way it has to be",
            ErrorCode::ClockSkew => "the request's time is more than a minute off",
            ErrorCode::Replayed => "the request was already seen",
            ErrorCode::BodyMismatch => "the body is not the one that was signed",
            _ => "the signature is not valid for this receiver",
        };
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// The request is not as it has to be.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::Invalid, message)
    }

    /// The body is larger than this kind of request may have.
    pub(crate) fn body_too_large(limit_bytes: u64) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::Invalid,
            format!("the body is over the limit of {}", mebibytes(limit_bytes)),
        )
    }

    /// More bytes than the sandbox accepts.
    pub(crate) fn input_limit(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::InputLimit,
            message,
        )
    }

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }

    /// It cannot be done in the present state.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, message)
    }

    /// The workspace has no room left.
    pub(crate) fn disk_full(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            ErrorCode::DiskFull,
            message,
        )
    }

    /// It is nobody's sandbox.
    pub(crate) fn unclaimed() -> Self {
        let mut error = Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::Unclaimed,
            "the sandbox was made in advance and is nobody's yet",
        );
        error.body.fix = Some("ask the runtime for a sandbox, which claims one".into());
        error
    }

    /// It has to be claimed by whoever may command it.
    pub(crate) fn waits_for_claim() -> Self {
        let mut error = Self::unclaimed();
        error.body.fix = Some("claim it with `POST /v1/claim`".into());
        error
    }

    /// Somebody has claimed it before.
    pub(crate) fn claimed_already(claimant: &str) -> Self {
        let mut error = Self::conflict("the sandbox is claimed already");
        error.body.details = serde_json::json!({ "claimant": claimant });
        error
    }

    /// Something did not come up in time.
    pub(crate) fn start_timeout(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::StartTimeout,
            message,
        )
    }

    /// A fault of ours, with its whole chain of causes: nothing in an agent is secret from the
    /// one who commands it.
    pub(crate) fn internal(doing: &str, cause: &dyn std::error::Error) -> Self {
        let mut message = format!("{doing}: {cause}");
        let mut cause = cause.source();
        while let Some(next) = cause {
            message = format!("{message}: {next}");
            cause = next.source();
        }
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Internal,
            message,
        )
    }
}
