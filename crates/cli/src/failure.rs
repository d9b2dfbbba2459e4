//! Why the command could not do its work, by who has to act, and the words for it.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::signal_name;
use glovebox_protocol::file::escape_for_display;

use crate::words::for_terminal;

/// A cause of any kind.
pub(crate) type Cause = Box<dyn Error + Send + Sync>;

/// Why the command could not do its work. A program that failed is none: it has an exit status.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line asks for what cannot be: the person has to write it otherwise.
    #[error("{problem}")]
    Usage {
        /// What cannot be.
        problem: String,
        /// The command whose help says what can.
        command: &'static str,
    },
    /// A file that the person named is no good: the person has to look at it.
    #[error("{problem}")]
    Input {
        /// Which file and what is wrong with it.
        problem: String,
        /// What to do about it.
        fix: Option<String>,
        /// Why, where the system said so.
        #[source]
        cause: Option<Cause>,
    },
    /// The machine cannot do it: whoever looks after it has to act.
    #[error("{doing}")]
    Machine {
        /// What was being done.
        doing: String,
        /// What to do about it.
        fix: Option<String>,
        /// Which kind of failure; stable.
        code: ErrorCode,
        /// Why it failed.
        #[source]
        cause: Option<Cause>,
    },
    /// A signal ended the command.
    #[error("stopped by {} while {doing}", signal_name(*signal))]
    Stopped {
        /// What was being done.
        doing: String,
        /// The signal's number.
        signal: i32,
    },
    /// Nobody reads what the command prints.
    #[error("nobody reads the output any more")]
    OutputGone,
}

impl Failure {
    /// A command line that asks for what cannot be.
    pub(crate) fn usage(problem: impl Into<String>) -> Self {
        Self::Usage {
            problem: problem.into(),
            command: "run",
        }
    }

    /// The same, told of a command other than `run`.
    pub(crate) fn of(self, name: &'static str) -> Self {
        match self {
            Self::Usage { problem, .. } => Self::Usage {
                problem,
                command: name,
            },
            other => other,
        }
    }

    /// A file that cannot be used, with the system's reason.
    pub(crate) fn input(problem: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self::Input {
            problem: problem.into(),
            fix: None,
            cause: Some(cause.into()),
        }
    }

    /// A file that cannot be used, where the problem says it all.
    pub(crate) fn bad_input(problem: impl Into<String>) -> Self {
        Self::Input {
            problem: problem.into(),
            fix: None,
            cause: None,
        }
    }

    /// Something on this machine did not work.
    pub(crate) fn machine(doing: impl Into<String>, cause: impl Into<Cause>) -> Self {
        Self::Machine {
            doing: doing.into(),
            fix: None,
            code: ErrorCode::Internal,
            cause: Some(cause.into()),
        }
    }

    /// The exit status of a command that ends with this.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Usage { .. } => 2,
            Self::Input { .. } | Self::Machine { .. } => 125,
            Self::Stopped { signal, .. } => u8::try_from(128 + signal).unwrap_or(125),
            Self::OutputGone => 141,
        }
    }

    fn fix(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Input { fix, .. } | Self::Machine { fix, .. } => fix.as_deref().map(Into::into),
            Self::Usage { command, .. } => {
                Some(format!("`glovebox {command} --help` says what can be asked for").into())
            }
            Self::Stopped { .. } | Self::OutputGone => None,
        }
    }

    /// One sentence: what was being done and why it failed, causes included.
    pub(crate) fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let next = error.to_string();
            // Transparent errors repeat themselves.
            if !text.ends_with(&next) {
                // Writing to a `String` cannot fail.
                let _ = write!(text, ": {next}");
            }
            cause = error.source();
        }
        text
    }

    /// The lines for a person: the sentence, and what to do where there is something.
    pub(crate) fn lines(&self) -> Vec<String> {
        let problem = format!("error: {}", self.sentence());
        let fix = self.fix().map(|fix| format!("  fix: {fix}"));
        std::iter::once(problem).chain(fix).collect()
    }

    /// The same as text for a terminal.
    pub(crate) fn for_person(&self) -> String {
        let lines = self.lines();
        let lines = lines.iter().map(|line| for_terminal(line) + "\n");
        lines.collect()
    }

    /// The form for programs.
    pub(crate) fn for_program(&self) -> ErrorBody {
        let code = match self {
            Self::Usage { .. } | Self::Input { .. } => ErrorCode::Invalid,
            Self::Machine { code, .. } => *code,
            Self::Stopped { .. } | Self::OutputGone => ErrorCode::Internal,
        };
        let body = ErrorBody::new(code, self.sentence());
        match self.fix() {
            Some(fix) => body.with_fix(fix),
            None => body,
        }
    }
}

/// A path for people, on one line and without control characters.
pub(crate) fn shown(path: impl AsRef<Path>) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    escape_for_display(path.as_ref().as_os_str().as_bytes())
}

/// The system's reason alone: the sentence around it already names the path, and the number
/// says nothing to a person.
pub(crate) fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let words = text
        .split_once(" (os error")
        .map_or(text.as_str(), |(words, _)| words);
    // `fs_err` puts what was done, with the path in backquotes, in front.
    words
        .rsplit_once("`: ")
        .map_or(words, |(_, words)| words)
        .into()
}

/// A file of the person's that could not be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    Failure::input(format!("cannot read {}", shown(path)), reason(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_an_agent_cannot_steer_the_terminal() {
        let body = ErrorBody::new(ErrorCode::Internal, "no\u{1b}[2J").with_fix("\rerror: x");
        let error = glovebox_client::ClientError::Refused(Box::new(body));
        let failure = crate::run::from_client("asking", error);
        assert_eq!(
            failure.for_person(),
            "error: asking: no\\u{1b}[2J\n  fix: \\u{d}error: x\n"
        );
        assert_eq!(failure.for_program().message, "asking: no\u{1b}[2J");
    }

    #[test]
    fn a_missing_file_is_one_clear_line() {
        let path = Path::new("no\nsuch.py");
        let error = fs_err::File::open(path).unwrap_err();
        let failure = unreadable(path, &error);
        assert_eq!(
            failure.for_person(),
            "error: cannot read no\\u{a}such.py: No such file or directory\n"
        );
        assert_eq!(failure.exit_status(), 125);
    }
}
