//! What an execution's end means for the command: the exit status, and a line where one helps.

use glovebox_protocol::event::Outcome;

/// The exit status of a command whose program was killed.
pub(crate) const KILLED: u8 = 137;

/// The exit status of a command that Glovebox itself failed.
pub(crate) const FAILED: u8 = 125;

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// The exit status of the command.
    pub(crate) status: u8,
    /// What to tell a person; nothing where the program has said it all.
    pub(crate) line: Option<String>,
    /// Whether the sandbox has ended too, and everything in it.
    pub(crate) sandbox_gone: bool,
}

impl Verdict {
    /// All went well.
    pub(crate) const FINE: Self = Self {
        status: 0,
        line: None,
        sandbox_gone: false,
    };

    /// Glovebox lost the program; why is told apart. The sandbox may still be there.
    pub(crate) const LOST: Self = Self {
        status: FAILED,
        ..Self::FINE
    };

    /// What `outcome` means when people call the program `called`.
    pub(crate) fn of(outcome: &Outcome, called: &str) -> Self {
        let line = match outcome {
            Outcome::Exited { .. } | Outcome::Succeeded { .. } | Outcome::Raised { .. } => None,
            other => Some(format!("{called} {other}{}", advice(other))),
        };
        Self {
            status: status(outcome),
            line,
            sandbox_gone: false,
        }
    }

    /// The sandbox ended under the program.
    pub(crate) fn gone(called: &str, reason: &str) -> Self {
        Self {
            status: KILLED,
            line: Some(format!(
                "{called} was killed: its sandbox has ended, {reason}"
            )),
            sandbox_gone: true,
        }
    }
}

fn status(outcome: &Outcome) -> u8 {
    match outcome {
        // Linux keeps eight bits of an exit status.
        Outcome::Exited { code } => u8::try_from(code & 0xff).unwrap_or(1),
        Outcome::Succeeded { .. } => 0,
        Outcome::Raised { .. } | Outcome::KernelBroken { .. } => 1,
        Outcome::Signaled { signal } => u8::try_from(128 + signal).unwrap_or(KILLED),
        Outcome::OutOfMemory { .. } | Outcome::Cancelled { killed: true } => KILLED,
        Outcome::TimeLimit { .. } => 124,
        Outcome::Cancelled { killed: false } => 130,
        // A kernel that ended in the middle of a cell is a failure, whatever it ended with.
        Outcome::KernelDied { cause } => status(cause).max(1),
    }
}

fn advice(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::OutOfMemory { .. } => "; give it more with --memory or --class",
        Outcome::TimeLimit { .. } => "; give it longer with --timeout",
        Outcome::KernelDied { cause } => advice(cause),
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_has_its_status_and_its_words() {
        let ends = [
            Outcome::Exited { code: 0 },
            Outcome::Exited { code: 255 },
            Outcome::Signaled { signal: 11 },
            Outcome::OutOfMemory {
                limit_bytes: 1 << 30,
            },
            Outcome::TimeLimit {
                limit_ms: 1500,
                killed: true,
            },
            Outcome::Cancelled { killed: false },
            Outcome::Cancelled { killed: true },
            Outcome::Raised {
                execution_count: 1,
                name: "ValueError".into(),
            },
            Outcome::KernelDied {
                cause: Box::new(Outcome::Exited { code: 0 }),
            },
            Outcome::KernelDied {
                cause: Box::new(Outcome::OutOfMemory {
                    limit_bytes: 1 << 30,
                }),
            },
        ];
        let told: Vec<_> = ends
            .iter()
            .map(|outcome| Verdict::of(outcome, "a.py"))
            .map(|verdict| format!("{} {}", verdict.status, verdict.line.unwrap_or_default()))
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        0 
        255 
        139 a.py was ended by SIGSEGV
        137 a.py ran out of memory (limit 1024 MiB); give it more with --memory or --class
        124 a.py reached the time limit of 1.500 s and was killed; give it longer with --timeout
        130 a.py was interrupted on request
        137 a.py was killed on request
        1 
        1 a.py lost its kernel, which ended with exit status 0
        137 a.py lost its kernel, which ran out of memory (limit 1024 MiB); give it more with --memory or --class
        ");
    }
}
