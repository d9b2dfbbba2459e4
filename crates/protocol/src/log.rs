//! The log of an execution: all that it wrote, also what was over the budget of its stream.

use serde::{Deserialize, Serialize};

use crate::ids::ExecutionId;
use crate::sign::BodyDigest;

/// Bytes that the logs of one sandbox take together.
pub const MAX_LOG_BYTES: u64 = 16 * 1024 * 1024;

/// The last event of an answer to `GET /v1/executions/ID/log`, after the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logged {
    /// Which run of code.
    pub execution: ExecutionId,
    /// How many bytes were sent: the beginning of what it wrote to standard output and standard
    /// error, in the order in which it came.
    pub bytes: u64,
    /// Their SHA-256.
    pub sha256: BodyDigest,
    /// Bytes that it had written besides, when the answer began, and that were not kept.
    pub dropped_bytes: u64,
}
