//! The one error shape: `{code, message, fix, details, request_id}`.

use serde::{Deserialize, Serialize};

/// Stable codes. A client may match on them; the words beside them are for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    /// The request carried no signature, or not all its parts, or one of them twice.
    AuthMissing,
    /// The signature is wrong, or made for another receiver or with an unknown key.
    AuthRejected,
    /// The signature is right and its time is more than a minute off.
    ClockSkew,
    /// The same signed request was already seen.
    Replayed,
    /// The body does not have the length or hash that the signature names.
    BodyMismatch,
    /// The peer speaks another protocol number.
    ProtocolMismatch,
    /// The receiver belongs to another installation than the sender.
    WrongInstallation,
    /// Sandboxes of this image may not be made here.
    ImageNotAllowed,
    /// Something in the request is not as it has to be.
    Invalid,
    /// There is no such route, file, execution or kernel.
    NotFound,
    /// The name is taken, or the thing is in a state in which this cannot be done.
    Conflict,
    /// More bytes than the sandbox accepts.
    InputLimit,
    /// The workspace has no room left, in bytes or in files.
    DiskFull,
    /// The sandbox was made in advance and belongs to nobody yet.
    Unclaimed,
    /// The runtime has no room for another sandbox.
    Exhausted,
    /// The sandbox was not ready in time.
    StartTimeout,
    /// The sandbox has ended.
    SandboxGone,
    /// The runtime cannot enforce something that was asked for.
    CapabilityMissing,
    /// The runtime cannot be reached.
    RuntimeUnavailable,
    /// A fault of Glovebox itself.
    Internal,
}

/// What a failed request answers with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorBody {
    /// Which kind of failure; stable.
    pub code: ErrorCode,
    /// What was being done, with what, and why it failed: one sentence.
    pub message: String,
    /// What to do about it, where there is something to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Facts for programs, by code.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
    /// Names this request in the logs of the side that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

impl ErrorBody {
    /// An error with a code and a sentence.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            fix: None,
            details: serde_json::Value::Null,
            request_id: None,
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: serde_json::Value) -> Self {
        self.details = details;
        self
    }
}
