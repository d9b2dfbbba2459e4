//! A persistent kernel in a sandbox.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::agent_config::Start;
use crate::ids::ExecutionId;

/// Body of `POST /v1/kernel`: start the kernel. Answered with [`KernelInfo`] when it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartKernel {
    /// How long the start may take, in milliseconds; 0 means the default of 90 s.
    #[serde(default)]
    pub start_limit_ms: u64,
    /// Variables added to the fixed environment of the kernel, with the same exceptions as for
    /// programs. A kernel that a restart or an execute puts in its place has them too.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// What is known of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelInfo {
    /// What it is doing.
    pub state: KernelState,
    /// Counts the kernels of this sandbox: 1 for the first. A higher number than before means
    /// that variables are gone.
    pub generation: u32,
    /// Language and its version, such as `python 3.11.2`.
    pub language: String,
    /// Where the present kernel came from, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<Start>,
    /// Why the last kernel is gone, in words, where one is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
}

/// What a kernel is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelState {
    /// There is none.
    Absent,
    /// It is being started.
    Starting,
    /// It waits for code.
    Idle,
    /// It runs code.
    Busy,
}

/// Body of `POST /v1/kernel/execute`. The answer is a framed stream that ends with
/// [`crate::event::EventBody::ExecutionEnded`]. Without a kernel one is started first; if there
/// was one before, [`crate::event::EventBody::KernelReplaced`] says so. While another execute
/// runs the answer is 409.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Execute {
    /// Chosen by the caller; a second execute with the same id is refused.
    pub execution: ExecutionId,
    /// The code, as it would be typed into a notebook cell.
    pub code: String,
    /// After this many milliseconds the code is interrupted, and the kernel killed if that does
    /// not help. At least 1.
    pub time_limit_ms: u64,
    /// How many bytes of output, displays included, are sent at most.
    #[serde(default = "Execute::default_output_limit_bytes")]
    pub output_limit_bytes: u64,
    /// Do not count the execution and keep it out of history.
    #[serde(default)]
    pub silent: bool,
}

impl Execute {
    /// The output budget when the caller names none: 10 MiB.
    #[must_use]
    pub const fn default_output_limit_bytes() -> u64 {
        10 * 1024 * 1024
    }
}
