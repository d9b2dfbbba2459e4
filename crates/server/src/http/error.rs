//! One shape for everything that goes wrong, and the one place that maps it to a status.

use axum::response::{IntoResponse, Response};
use glovebox_client::ClientError;
use glovebox_protocol::error::ErrorCode;
use glovebox_store::StoreError;
use http::StatusCode;
use serde::Serialize;
use serde_json::Value;

use crate::app::gate::Denial;
use crate::failure::{DISK_FULL, NO_ROOM, chain, is_disk_full};

/// Why a request was not done. The request's id is put in where every answer passes.
#[derive(Debug, Clone)]
pub struct ApiError {
    /// The status of the answer.
    pub status: StatusCode,
    /// A stable word for programs.
    pub code: &'static str,
    /// What went wrong, in a sentence.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// More for programs.
    pub details: Value,
}

/// The body of an answer that is an error.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ErrorBody {
    /// A stable word for programs.
    pub code: String,
    /// What went wrong, in a sentence.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// More for programs; depends on the code.
    #[schema(value_type = Object)]
    pub details: Value,
    /// The id of the request, as the server's log has it.
    pub request_id: String,
}

impl ApiError {
    fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            fix: fix.into(),
            details: Value::Object(serde_json::Map::new()),
        }
    }

    /// The request itself is wrong.
    pub fn invalid(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid", message, fix)
    }

    /// Nobody is signed in.
    pub fn not_signed_in() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "not_signed_in",
            "this needs a session or an API key",
            "sign in, or send `Authorization: Bearer KEY` with a key that is not revoked",
        )
    }

    /// There is no such thing, or the caller may not know of it.
    pub fn not_found(what: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            format!("there is no such {what}"),
            "look at the list; what is not yours is not shown",
        )
    }

    /// The caller may see it and may not do this with it.
    pub fn forbidden(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", message, fix)
    }

    /// The same, with a word of its own.
    pub fn refused(code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message, fix)
    }

    /// It does not fit what is there.
    pub fn conflict(
        code: &'static str,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self::new(StatusCode::CONFLICT, code, message, fix)
    }

    /// It is more than may be sent.
    pub fn too_large(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message, fix)
    }

    /// Too often in too short a time.
    pub fn too_many(message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_attempts",
            message,
            fix,
        )
    }

    /// A quota is reached, by its name.
    pub fn quota(code: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, message, fix)
    }

    /// What makes sandboxes cannot be reached just now.
    pub fn runtime_unavailable(message: impl Into<String>) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "runtime_unavailable",
            message,
            "try again in a moment; a system admin sees the reason at Admin → System → Sandbox",
        )
    }

    /// The server has no room to keep anything.
    pub fn disk_full() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "disk_full",
            DISK_FULL,
            "ask whoever runs the server for room, then try again",
        )
    }

    /// The server has only so much room left as it needs for itself.
    pub fn no_room() -> Self {
        Self::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "disk_full",
            NO_ROOM,
            "delete files and threads that are not needed, or ask whoever runs the server for room",
        )
    }

    /// The server itself failed; the log has the reason under the request's id.
    pub fn internal() -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal",
            "the server could not do this",
            "try again; an administrator finds the reason in the server's log by the request id",
        )
    }

    /// A file of the object store cannot be given out, as the log says in full.
    fn damaged(code: &'static str, message: &str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            code,
            message,
            "a system admin restores it from a backup; the server's log names it by the request id",
        )
    }

    /// The database does not answer.
    pub fn database_unavailable() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "database_unavailable",
            "the database does not answer",
            "whoever runs the server looks at the database, and finds the reason in the server's log",
        )
    }

    /// With more for programs.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        // The body is written where the request's id is known.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match &error {
            StoreError::Taken { what } => {
                Self::conflict("taken", format!("{what} is taken"), "choose another one")
            }
            StoreError::Conflict { what } => Self::conflict(
                "changed_meanwhile",
                format!("{what} was changed by somebody else in the meantime"),
                "load it again and repeat the change",
            ),
            StoreError::Lost { .. } => {
                tracing::error!(error = chain(&error), "a stored file is lost");
                Self::damaged("file_lost", "the bytes of this file are not there any more")
            }
            StoreError::Altered { .. } => {
                tracing::error!(error = chain(&error), "a stored file was altered");
                Self::damaged(
                    "file_altered",
                    "the stored bytes of this file are not those that were saved",
                )
            }
            _ => {
                tracing::error!(error = chain(&error), "the store failed");
                if is_disk_full(&error) {
                    Self::disk_full()
                } else {
                    Self::internal()
                }
            }
        }
    }
}

impl From<ClientError> for ApiError {
    fn from(error: ClientError) -> Self {
        let ClientError::Refused(body) = &error else {
            tracing::warn!(error = chain(&error), "a runtime could not be reached");
            return Self::runtime_unavailable("the sandbox's runtime could not be reached");
        };
        let message = body.message.clone();
        let fix = |usual: &str| body.fix.clone().unwrap_or_else(|| usual.into());
        match body.code {
            ErrorCode::NotFound => Self::not_found("file"),
            ErrorCode::Invalid => Self::invalid(message, fix("look at the reference of this call")),
            ErrorCode::InputLimit => Self::too_large(message, fix("send less")),
            ErrorCode::DiskFull => {
                Self::conflict("disk_full", message, fix("delete files of the sandbox"))
            }
            ErrorCode::Conflict => {
                Self::conflict("conflict", message, fix("wait for what runs, or end it"))
            }
            ErrorCode::SandboxGone => {
                Self::conflict("sandbox_gone", message, fix("make another sandbox"))
            }
            ErrorCode::CapabilityMissing => Self::conflict(
                "capability_missing",
                message,
                fix("ask a system admin to change the profile's settings"),
            ),
            ErrorCode::Exhausted => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "exhausted",
                message,
                fix("end sandboxes that are not needed, or give the machine more room"),
            ),
            ErrorCode::StartTimeout => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "start_timeout",
                message,
                fix("try again; the machine is busy"),
            ),
            _ => {
                tracing::warn!(error = chain(&error), "a runtime refused what it was asked");
                Self::runtime_unavailable("the sandbox's runtime refused what it was asked")
            }
        }
    }
}

impl From<Denial> for ApiError {
    fn from(denial: Denial) -> Self {
        let status = if denial.name.starts_with("quota:") {
            StatusCode::TOO_MANY_REQUESTS
        } else {
            StatusCode::FORBIDDEN
        };
        Self::new(status, denial.name, denial.message, denial.fix).with(denial.details)
    }
}
