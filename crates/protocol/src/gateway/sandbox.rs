//! Sandboxes as a gateway is asked for them, and as it shows them.

use serde::{Deserialize, Serialize};

use crate::agent_config::Start;
use crate::ids::{InstallationId, SandboxId};
use crate::limits::{InputLimits, Limits};
use crate::sign::Epoch;

/// Body of `POST /v1/sandboxes`. There is no field for a mount, a device, a network, a privilege
/// or a key, and none will come: they cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateSandbox {
    /// Chosen by the sender, so that a request whose answer was lost can be asked about.
    pub id: SandboxId,
    /// Which installation it is for; a gateway of another one refuses.
    pub installation: InstallationId,
    /// One of the allowed images. `None`: the first of them, or what the runtime has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Hard limits.
    pub limits: Limits,
    /// How much may be pushed in.
    pub input_limits: InputLimits,
    /// Who may share a warm start with whom; never empty.
    pub trust_domain: String,
    /// How the kernel comes into being.
    #[serde(default)]
    pub start: Start,
    /// After so many milliseconds without a request or a running program, what runs is ended and
    /// the workspace kept. `None`: never.
    #[serde(default)]
    pub idle_limit_ms: Option<u64>,
    /// When the sandbox has to be gone, in milliseconds since 1970 (UTC).
    pub hard_deadline_ms: i64,
    /// How long making it may take, in milliseconds; then it is taken back, and the answer is
    /// `start_timeout`.
    pub start_limit_ms: u64,
    /// Made in advance: its agent obeys nothing but a claim until it is claimed.
    #[serde(default)]
    pub is_unclaimed: bool,
}

/// A sandbox as its gateway knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxView {
    /// Which one.
    pub id: SandboxId,
    /// Whether it runs.
    pub state: SandboxState,
    /// When it has to be gone, in milliseconds since 1970 (UTC).
    pub hard_deadline_ms: Option<i64>,
    /// The boot epoch of its agent, so that the first request to it can be signed at once. In the
    /// answer to a create; elsewhere where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_epoch: Option<Epoch>,
}

/// The reason of a sandbox that ended because its hard deadline had come, on every runtime.
pub const HARD_LIMIT_REACHED: &str = "it reached its hard time limit";

/// Whether a sandbox runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum SandboxState {
    /// It is being made.
    Starting,
    /// Its agent answers.
    Running,
    /// It runs, and its hard deadline is near enough for a last collection.
    Ending {
        /// Milliseconds until it is ended.
        left_ms: u64,
    },
    /// It has ended.
    Ended {
        /// Why, in words.
        reason: String,
        /// When this was noticed, in milliseconds since 1970 (UTC).
        at_ms: i64,
    },
}

/// Answer to `GET /v1/sandboxes`: those after the id in the query's `after`, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxList {
    /// At most 1 000.
    pub items: Vec<SandboxView>,
    /// What to ask for next; nothing where these were the last.
    pub next_cursor: Option<String>,
}
