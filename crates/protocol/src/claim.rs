//! Taking a sandbox that was made in advance.

use serde::{Deserialize, Serialize};

/// Longest name of a claimant, in bytes.
pub const MAX_CLAIMANT: usize = 200;

/// Body of `POST /v1/claim`. It is obeyed once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimSandbox {
    /// Who takes it, in the sender's own words: so that a sender whose answer was lost finds out
    /// whether it was itself. Neither empty nor longer than [`MAX_CLAIMANT`].
    pub claimant: String,
}
