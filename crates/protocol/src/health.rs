//! What an agent says of itself.

use serde::{Deserialize, Serialize};

use crate::ids::SandboxId;
use crate::sign::Epoch;

/// Answer to the unsigned `GET /v1/health`: enough to sign the first request, nothing more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The protocol number that the agent speaks.
    pub protocol: u32,
    /// The agent's boot epoch, which every signed request has to name.
    pub epoch: Epoch,
}

/// Answer to the signed `GET /v1/status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Which sandbox this is.
    pub sandbox_id: SandboxId,
    /// Whether it was made in advance and nobody has claimed it yet.
    #[serde(default)]
    pub is_unclaimed: bool,
    /// Who has claimed it, where it was made in advance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claimant: Option<String>,
    /// Milliseconds since the agent started.
    pub uptime_ms: u64,
    /// Milliseconds since the last execute, file transfer or kernel command.
    pub idle_ms: u64,
    /// Bytes pushed in since creation.
    pub input_bytes: u64,
    /// Bytes used in `/workspace`.
    pub workspace_used_bytes: u64,
    /// Files and folders in `/workspace`.
    pub workspace_used_inodes: u64,
    /// How often the kernel's out-of-memory killer has struck the workload.
    pub oom_kills: u64,
    /// Processes of the workload that are alive.
    pub processes: u32,
}
