//! The words by which ends of executions are counted.

use glovebox_protocol::event::{EventBody, Outcome};
use glovebox_protocol::thread::ReplyOutcome;

/// Its server was ended while it ran.
pub(super) const ABANDONED: &str = "abandoned";

/// All of them.
pub(super) const ALL: [&str; 11] = [
    "succeeded",
    "raised",
    "time_limit",
    "cancelled",
    "out_of_memory",
    "kernel_died",
    "kernel_broken",
    "exited",
    "sandbox_gone",
    "failed",
    ABANDONED,
];

/// All of replies of chat.
pub(super) const OF_REPLIES: [&str; 4] = ["done", "stopped", "failed", ABANDONED];

/// The word for how a reply of chat ended.
pub(super) const fn of_reply(outcome: ReplyOutcome) -> &'static str {
    match outcome {
        ReplyOutcome::Done => "done",
        ReplyOutcome::Stopped => "stopped",
        ReplyOutcome::Failed => "failed",
    }
}

/// The word for the last event of an execution.
pub(super) fn of(last: &EventBody) -> &'static str {
    match last {
        EventBody::ExecutionEnded(ended) => match &ended.outcome {
            Outcome::Succeeded { .. } => "succeeded",
            Outcome::Raised { .. } => "raised",
            Outcome::TimeLimit { .. } => "time_limit",
            Outcome::Cancelled { .. } => "cancelled",
            Outcome::OutOfMemory { .. } => "out_of_memory",
            Outcome::KernelDied { cause } if matches!(**cause, Outcome::OutOfMemory { .. }) => {
                "out_of_memory"
            }
            Outcome::KernelDied { .. } => "kernel_died",
            Outcome::KernelBroken { .. } => "kernel_broken",
            Outcome::Exited { .. } | Outcome::Signaled { .. } => "exited",
        },
        EventBody::SandboxGone { .. } => "sandbox_gone",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::event::Ended;
    use glovebox_protocol::ids::ExecutionId;

    use super::*;

    #[test]
    fn every_end_has_a_word_that_is_there_from_the_start() {
        let memory = Outcome::OutOfMemory { limit_bytes: 1 };
        let died = |cause: Outcome| Outcome::KernelDied {
            cause: Box::new(cause),
        };
        let broken = Outcome::KernelBroken { what: "it".into() };
        for (outcome, word) in [
            (Outcome::Exited { code: 0 }, "exited"),
            (Outcome::Signaled { signal: 9 }, "exited"),
            (memory.clone(), "out_of_memory"),
            (died(memory), "out_of_memory"),
            (died(Outcome::Signaled { signal: 9 }), "kernel_died"),
            (broken, "kernel_broken"),
            (Outcome::Cancelled { killed: true }, "cancelled"),
        ] {
            let last = EventBody::ExecutionEnded(Ended {
                execution: ExecutionId::new(),
                outcome,
                duration_ms: 1,
                notes: Vec::new(),
            });
            assert_eq!(of(&last), word);
            assert!(ALL.contains(&word), "{word}");
        }
    }
}
