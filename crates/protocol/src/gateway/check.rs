//! Preflight: what a gateway finds when it looks at its host.

use serde::{Deserialize, Serialize};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckStatus {
    /// As it has to be.
    Pass,
    /// Sandboxes can be made; somebody should look at this.
    Warn,
    /// Sandboxes cannot be made, or not with all that they promise.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name, such as `auth.clock_skew`; the deployment guide lists all.
    pub id: String,
    /// How it ended.
    pub status: CheckStatus,
    /// What was found, in a sentence.
    pub message: String,
    /// What to do about it, where there is something to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// Answer to `GET /v1/preflight`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Preflight {
    /// Every check, in the order of the deployment guide.
    pub checks: Vec<Check>,
}

impl Preflight {
    /// The worst of all checks.
    #[must_use]
    pub fn status(&self) -> CheckStatus {
        let worst = self.checks.iter().map(|check| check.status).max();
        worst.unwrap_or(CheckStatus::Pass)
    }
}
