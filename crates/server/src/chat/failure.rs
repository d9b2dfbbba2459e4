//! What stands in the way of a reply, in plain words: a code, a sentence, and what to do.

use glovebox_client::ClientError;
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::thread::ReplyFailure;
use glovebox_store::StoreError;

use super::turn::TurnError;
use crate::app::executions::ExecutionError;
use crate::app::gate::Denial;
use crate::app::sandboxes::SandboxError;
use crate::failure::chain;

/// What to do where the runtime cannot be had just now.
const LATER: &str = "try again in a moment; a system admin sees the reason at Admin → System → \
                     Sandbox. Chat goes on without code meanwhile";

pub(super) fn refused(code: &str, message: impl Into<String>, fix: impl Into<String>) -> TurnError {
    TurnError::Refused(ReplyFailure::new(code, message, fix))
}

/// The store's own failure.
pub(super) fn of_store(error: &StoreError) -> ReplyFailure {
    if is_disk_full(error) {
        return ReplyFailure::new(
            "disk_full",
            "the server's disk is full, so that nothing more can be kept",
            "ask whoever runs the server for room, then try again",
        );
    }
    ReplyFailure::new(
        "internal",
        "the server could not keep what happened",
        "try again; an administrator finds the reason in the server's log",
    )
}

/// Whether somewhere below a disk had no room.
fn is_disk_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut below = Some(error);
    while let Some(error) = below {
        let is_full = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::StorageFull);
        if is_full || error.to_string().contains("disk is full") {
            return true;
        }
        below = error.source();
    }
    false
}

pub(super) fn of_denial(denial: Denial) -> ReplyFailure {
    ReplyFailure::new(denial.name, denial.message, denial.fix).with(denial.details)
}

/// Why there is no sandbox for the code.
pub(super) fn of_sandbox(error: SandboxError) -> TurnError {
    match error {
        SandboxError::Denied(denial) => TurnError::Refused(of_denial(denial)),
        SandboxError::Store(error) => TurnError::Store(error),
        SandboxError::Runtime(error) => TurnError::Refused(of_client(&error)),
        SandboxError::NotFound => refused(
            "not_found",
            "the thread or its workspace is not there any more",
            "look at the list of threads",
        ),
        SandboxError::Gone { why } => TurnError::Refused(gone(&why)),
    }
}

pub(super) fn of_execution(error: ExecutionError) -> TurnError {
    let message = error.to_string();
    match error {
        ExecutionError::Sandbox(error) => of_sandbox(error),
        ExecutionError::Busy { .. } => refused(
            "busy",
            "other code runs in the sandbox of this thread",
            "wait until it has ended, or end it, then try again",
        ),
        ExecutionError::NotReady => refused("busy", message, "try again in a moment"),
        ExecutionError::Stopping => TurnError::Refused(server_stops()),
        ExecutionError::KeyIsTaken | ExecutionError::TooLong { .. } | ExecutionError::NotFound => {
            refused("internal", message, LATER)
        }
    }
}

/// The server that works on the reply is about to end.
pub(super) fn server_stops() -> ReplyFailure {
    ReplyFailure::new(
        "server_ended",
        "the server that worked on this reply is being stopped",
        "try again when it is back; what was said, sent and saved is still there",
    )
}

/// The sandbox ended in the middle.
pub(super) fn gone(why: &str) -> ReplyFailure {
    ReplyFailure::new(
        "sandbox_gone",
        format!("the sandbox of this thread has ended: {why}"),
        "try again: a new sandbox gets the files of the thread back, variables are gone",
    )
}

/// What a gateway or an agent said, or that it said nothing.
pub(super) fn of_client(error: &ClientError) -> ReplyFailure {
    let ClientError::Refused(body) = error else {
        tracing::warn!(error = chain(error), "a runtime could not be reached");
        return ReplyFailure::new(
            "runtime_unavailable",
            "the runtime that makes sandboxes cannot be reached, so no code can run",
            LATER,
        );
    };
    of_body(body)
}

/// The same where the answer is at hand.
pub(super) fn of_body(body: &ErrorBody) -> ReplyFailure {
    let fix = |usual: &str| body.fix.clone().unwrap_or_else(|| usual.into());
    let (code, fix) = match body.code {
        ErrorCode::SandboxGone | ErrorCode::NotFound => return gone(&body.message),
        ErrorCode::DiskFull => (
            "disk_full",
            fix("delete files of the sandbox that are not needed"),
        ),
        ErrorCode::InputLimit => ("input_limit", fix("send smaller files")),
        ErrorCode::Exhausted => (
            "exhausted",
            fix("end sandboxes that are not needed, or try again later"),
        ),
        ErrorCode::StartTimeout => ("start_timeout", fix("try again; the machine is busy")),
        ErrorCode::CapabilityMissing => (
            "capability_missing",
            fix("ask a system admin to change the profile's settings"),
        ),
        ErrorCode::Conflict => ("conflict", fix("wait for what runs, or end it")),
        ErrorCode::RuntimeUnavailable => ("runtime_unavailable", fix(LATER)),
        ErrorCode::Invalid => ("invalid", fix("look at what was sent")),
        _ => {
            tracing::warn!(code = ?body.code, message = body.message, "a runtime refused");
            return ReplyFailure::new(
                "runtime_unavailable",
                "the sandbox's runtime refused what it was asked",
                LATER,
            );
        }
    };
    ReplyFailure::new(code, body.message.clone(), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_from_other_faults() {
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let other = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert!(is_disk_full(&full));
        assert!(!is_disk_full(&other));
        #[derive(Debug, thiserror::Error)]
        #[error("writing")]
        struct Above(#[source] std::io::Error);
        assert!(is_disk_full(&Above(full)));
    }
}
