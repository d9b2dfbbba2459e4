//! Building faults: what was being done, why it failed, what to do.

use std::fmt::Display;

use crate::control::{Fault, FaultKind};
use crate::weakness::Weakness;

impl Fault {
    /// Something failed that ought to work.
    pub fn failed(doing: impl Into<String>, cause: impl Display) -> Self {
        Self {
            kind: FaultKind::Failed,
            doing: doing.into(),
            cause: cause.to_string(),
            fix: None,
        }
    }

    /// The request cannot be fulfilled as it stands.
    pub fn invalid(doing: impl Into<String>, cause: impl Display) -> Self {
        Self {
            kind: FaultKind::Invalid,
            ..Self::failed(doing, cause)
        }
    }

    /// There is no room.
    pub fn exhausted(doing: impl Into<String>, cause: impl Display) -> Self {
        Self {
            kind: FaultKind::Exhausted,
            ..Self::failed(doing, cause)
        }
    }

    /// A protection cannot be had here, and going without it was not accepted.
    pub fn weaker(weakness: Weakness, cause: impl Display) -> Self {
        Self {
            kind: FaultKind::Weaker { weakness },
            doing: format!(
                "starting without `{weakness}` ({})",
                weakness.what_is_lost()
            ),
            cause: cause.to_string(),
            fix: Some(format!(
                "run `glovebox doctor` to see what is missing, or accept it with `--accept-weaker={weakness}`"
            )),
        }
    }

    /// This fault, and behind it the one that tidying up after it met.
    #[must_use]
    pub fn and_then(self, tidied: Result<(), Self>) -> Self {
        match tidied {
            Ok(()) => self,
            Err(second) => Self {
                cause: format!("{}; and then, {second}", self.cause),
                ..self
            },
        }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// An error with all its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        source = inner.source();
    }
    text
}
