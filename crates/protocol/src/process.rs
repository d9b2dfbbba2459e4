//! Running a program in a sandbox.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::Ended;
use crate::ids::ExecutionId;

/// Body of `POST /v1/processes`. The answer is a framed stream that ends with
/// [`crate::event::EventBody::ExecutionEnded`]; the program's output travels in `Stdout` and
/// `Stderr` frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartProcess {
    /// Chosen by the caller; a second start with the same id is refused.
    pub execution: ExecutionId,
    /// Program and arguments. The program is looked up in the sandbox's `PATH`. Arguments are
    /// percent-encoded bytes only where they are no UTF-8; see [`Argument`].
    pub argv: Vec<Argument>,
    /// Variables to set or override, on top of the sandbox's fixed environment. Names must be
    /// `[A-Za-z_][A-Za-z0-9_]*`; loader and sandbox variables are refused.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Where standard input comes from.
    #[serde(default)]
    pub stdin: Stdin,
    /// After this many milliseconds the program is interrupted, and killed if that does not
    /// help. At least 1.
    pub time_limit_ms: u64,
    /// How many bytes of output are sent at most; what is more is dropped and counted. Without
    /// it nothing is dropped, and a slow reader slows the program down.
    #[serde(default)]
    pub output_limit_bytes: Option<u64>,
}

/// Where a program's standard input comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stdin {
    /// There is none: reads give end of file.
    #[default]
    Empty,
    /// From the bodies of `POST /v1/processes/ID/stdin`, in order, until one with `?eof`.
    Requests,
}

/// One argument of a program, which Linux takes as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// Text.
    Text(String),
    /// Bytes that are no UTF-8, each as a number.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
    },
}

impl Argument {
    /// The argument as bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes { bytes } => bytes,
        }
    }
}

impl From<&std::ffi::OsStr> for Argument {
    fn from(text: &std::ffi::OsStr) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        match text.to_str() {
            Some(text) => Self::Text(text.into()),
            None => Self::Bytes {
                bytes: text.as_bytes().into(),
            },
        }
    }
}

impl From<&str> for Argument {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// Body of `POST /v1/processes/ID/cancel`, `POST /v1/kernel/ID/cancel` and
/// `POST /v1/kernel/interrupt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cancel {
    /// SIGINT, as Ctrl-C would send it.
    Interrupt,
    /// SIGKILL, for it and everything that it started.
    Kill,
}

/// Answer to `GET /v1/executions/ID`: what became of an execution, whoever was there to hear it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ExecutionState {
    /// It runs, or is about to.
    Running,
    /// It is over.
    Ended {
        /// How it ended.
        ended: Ended,
    },
    /// It was taken on and did not get as far as to run; its id is used all the same.
    Failed,
}

/// Answer to `POST /v1/workload/end`: everything that was still running has been killed and
/// reaped. With `?unused` only where nothing used the sandbox; else the answer is 409.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadEnded {
    /// How many processes there were.
    pub processes: u32,
}
