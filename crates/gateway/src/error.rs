//! How a request fails: one type, with named constructors. Its form as a reply is made in
//! [`crate::reply`].

use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::mebibytes;
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::RuntimeError;
use hyper::StatusCode;

/// Why a request was not fulfilled.
#[derive(Debug, Clone)]
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

    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.body.fix = Some(fix.into());
        self
    }

    fn details(mut self, details: serde_json::Value) -> Self {
        self.body.details = details;
        self
    }

    /// 401 in one of its forms; the words are the same for every fault of one form.
    pub(crate) fn unauthorized(code: ErrorCode) -> Self {
        let message = match code {
            ErrorCode::AuthMissing => "the request is not signed, or not in the way it has to be",
            ErrorCode::Replayed => "the request was already seen",
            ErrorCode::BodyMismatch => "the body is not the one that was signed",
            _ => "the signature is not valid for this gateway",
        };
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// The clocks of sender and gateway are too far apart.
    pub(crate) fn clock_skew(off_ms: i64) -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            ErrorCode::ClockSkew,
            "the request's time is more than a minute off the gateway's",
        )
        .fix("let both machines set their clocks by the network (NTP)")
        .details(serde_json::json!({ "off_ms": off_ms }))
    }

    /// The sender belongs elsewhere.
    pub(crate) fn wrong_installation() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            ErrorCode::WrongInstallation,
            "this gateway belongs to a different installation",
        )
        .fix("set GATEWAY_INSTALLATION_ID of the gateway to the server's installation, or use the server's own gateway")
    }

    /// The sender speaks another protocol.
    pub(crate) fn protocol_mismatch(theirs: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            ErrorCode::ProtocolMismatch,
            format!(
                "the gateway speaks protocol {}; this server speaks {theirs}",
                glovebox_protocol::PROTOCOL_VERSION
            ),
        )
        .fix("install the same version of server and gateway")
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

    /// There is no such thing.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message)
    }

    /// There is no sandbox of this id, and none is remembered.
    pub(crate) fn no_sandbox(id: SandboxId) -> Self {
        Self::not_found(format!("there is no sandbox {id}"))
    }

    /// It cannot be done in the present state.
    pub(crate) fn conflict(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, ErrorCode::Conflict, message)
    }

    /// The sandbox has ended.
    pub(crate) fn gone(id: SandboxId, reason: &str, at_ms: i64) -> Self {
        Self::new(
            StatusCode::GONE,
            ErrorCode::SandboxGone,
            format!("the sandbox {id} has ended: {reason}"),
        )
        .fix("create another one")
        .details(serde_json::json!({ "reason": reason, "at_ms": at_ms }))
    }

    /// The image is not one of the allowed.
    pub(crate) fn image_not_allowed(image: &str, allowed: &str) -> Self {
        let image = glovebox_protocol::file::escape_for_display(image.as_bytes());
        Self::new(
            StatusCode::FORBIDDEN,
            ErrorCode::ImageNotAllowed,
            format!("sandboxes of the image {image} may not be made here"),
        )
        .fix(format!("name one of GATEWAY_ALLOWED_IMAGES: {allowed}"))
    }

    /// The runtime makes sandboxes of something else.
    pub(crate) fn no_images(image: &str) -> Self {
        let image = image.get(..256).unwrap_or(image);
        let image = glovebox_protocol::file::escape_for_display(image.as_bytes());
        Self::new(
            StatusCode::FORBIDDEN,
            ErrorCode::ImageNotAllowed,
            format!("{image} cannot be used: this runtime makes sandboxes of its own root tree"),
        )
        .fix("name no image")
    }

    /// There is no room for another sandbox.
    pub(crate) fn exhausted(message: impl Into<String>, details: serde_json::Value) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, ErrorCode::Exhausted, message)
            .fix("end a sandbox, or give the gateway a larger budget")
            .details(details)
    }

    /// The sandbox was not ready in time, and what there was of it has been taken back.
    pub(crate) fn start_timeout(id: SandboxId, limit_ms: u64) -> Self {
        Self::new(
            StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::StartTimeout,
            format!("the sandbox {id} was not ready within {limit_ms} ms and was taken back"),
        )
        .details(serde_json::json!({ "limit_ms": limit_ms }))
    }

    /// The runtime cannot enforce something that was asked for.
    pub(crate) fn capability_missing(what: &str, fix: &str) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            ErrorCode::CapabilityMissing,
            format!("{what} cannot be had of this runtime"),
        )
        .fix(fix)
    }

    /// The agent in a sandbox speaks another protocol than the gateway.
    pub(crate) fn agent_protocol(id: SandboxId, theirs: u32) -> Self {
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            ErrorCode::ProtocolMismatch,
            format!(
                "the agent of the sandbox {id} speaks protocol {theirs}; the gateway speaks {}",
                glovebox_protocol::PROTOCOL_VERSION
            ),
        )
        .fix("make the image, or the root tree, anew with the gateway's version")
    }

    /// The runtime, or an agent, cannot be reached just now.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::RuntimeUnavailable,
            message,
        )
    }

    /// A fault of ours.
    pub(crate) fn internal(doing: &str, cause: &dyn std::error::Error) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            ErrorCode::Internal,
            chain(doing, cause),
        )
    }

    /// What a failure of the runtime means to whoever asked for a sandbox.
    pub(crate) fn from_runtime(error: &RuntimeError) -> Self {
        let message = match std::error::Error::source(error) {
            Some(cause) => chain(&error.to_string(), cause),
            None => error.to_string(),
        };
        let (status, code, fix) = match error {
            RuntimeError::NotFound { .. } => (StatusCode::NOT_FOUND, ErrorCode::NotFound, None),
            // The gateway knew of none: what is left of an earlier attempt is being taken back.
            RuntimeError::AlreadyExists { .. } | RuntimeError::Unavailable { fix: None, .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorCode::RuntimeUnavailable,
                None,
            ),
            RuntimeError::Unavailable { fix, .. } => (
                StatusCode::SERVICE_UNAVAILABLE,
                ErrorCode::RuntimeUnavailable,
                fix.clone(),
            ),
            RuntimeError::Unsupported { fix, .. } => (
                StatusCode::UNPROCESSABLE_ENTITY,
                ErrorCode::CapabilityMissing,
                fix.clone(),
            ),
            RuntimeError::Invalid(_) => (StatusCode::BAD_REQUEST, ErrorCode::Invalid, None),
            RuntimeError::Exhausted(_) => {
                (StatusCode::TOO_MANY_REQUESTS, ErrorCode::Exhausted, None)
            }
            RuntimeError::Internal { .. } => {
                (StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::Internal, None)
            }
        };
        let mut error = Self::new(status, code, message);
        error.body.fix = fix;
        error
    }
}

/// What was being done, and every cause, in one sentence.
pub(crate) fn chain(doing: &str, cause: &dyn std::error::Error) -> String {
    let mut message = format!("{doing}: {cause}");
    let mut cause = cause.source();
    while let Some(next) = cause {
        message = format!("{message}: {next}");
        cause = next.source();
    }
    message
}
