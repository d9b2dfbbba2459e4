//! What a gateway is asked and what it answers: protocol version 1, beside the agent's.
//!
//! Every request but `GET /healthz` carries the signature of a [`Credential`](crate::sign::Credential);
//! what is passed on to an agent carries an Ed25519 signature for that agent as well, which a
//! gateway can neither make nor alter.

mod canary;
mod check;
mod info;
mod ready;
mod sandbox;

pub use canary::{
    CanaryPlan, CanaryReport, CanaryResult, CanaryTarget, Expected, Reach, Resolver, Verdict,
};
pub use check::{Check, CheckStatus, Preflight};
pub use info::{Budget, CredentialInfo, ImageInfo, Info};
pub use ready::{KeepReady, KeptKind, KeptReady};
pub use sandbox::{CreateSandbox, HARD_LIMIT_REACHED, SandboxList, SandboxState, SandboxView};

/// Where a gateway passes a request on to the agent of a sandbox: this, the sandbox's id,
/// [`AGENT`], and the agent's own path with its query.
pub const SANDBOXES: &str = "/v1/sandboxes";

/// Between a sandbox's id and the path that its agent sees, which begins with a slash.
pub const AGENT: &str = "/agent";
