//! Whose sandbox this is. In a box that was made in advance it is nobody's at first.

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::agent_config::Claim;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::{Epoch, Verifier};

use crate::files::Inputs;
use crate::lock::Locked;

/// What comes with the claim, and stays.
pub(crate) struct Claimed {
    pub(crate) sandbox: SandboxId,
    pub(crate) verifier: Locked<Verifier>,
    pub(crate) inputs: Arc<Inputs>,
    /// After how long without use what runs is ended.
    pub(crate) idle_limit: Option<Duration>,
}

impl Claimed {
    /// The sandbox of `claim`, obeying requests that are signed for this epoch.
    pub(crate) fn new(claim: Claim, epoch: Epoch) -> Self {
        Self {
            sandbox: claim.sandbox,
            verifier: Locked::new(Verifier::new(
                claim.installation,
                claim.sandbox.to_string(),
                epoch,
                claim.keys,
            )),
            inputs: Arc::new(Inputs::new(claim.input_limits)),
            idle_limit: claim.idle_limit_ms.map(Duration::from_millis),
        }
    }
}
