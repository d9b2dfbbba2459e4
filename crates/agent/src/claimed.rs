//! Whose sandbox this is. In a box that was made in advance it is nobody's at first.

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::agent_config::Claim;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::{Epoch, Verifier};

use crate::error::ApiError;
use crate::files::Inputs;
use crate::lock::Locked;

/// What comes with the claim, and stays.
pub(crate) struct Claimed {
    pub(crate) sandbox: SandboxId,
    pub(crate) verifier: Locked<Verifier>,
    pub(crate) inputs: Arc<Inputs>,
    /// After how long without use what runs is ended.
    pub(crate) idle_limit: Option<Duration>,
    holder: Locked<Holder>,
}

/// Whether those who hold the keys use the sandbox already.
enum Holder {
    /// It was made for use.
    Maker,
    /// It was made in advance, and nobody has taken it.
    Nobody,
    /// It was made in advance, and taken.
    Claimant(String),
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
            holder: Locked::new(if claim.is_unclaimed {
                Holder::Nobody
            } else {
                Holder::Maker
            }),
        }
    }

    /// Whether it waits for its claim.
    pub(crate) fn is_unclaimed(&self) -> bool {
        self.holder.with(|holder| matches!(holder, Holder::Nobody))
    }

    /// Who has claimed it.
    pub(crate) fn claimant(&self) -> Option<String> {
        self.holder.with(|holder| match holder {
            Holder::Claimant(claimant) => Some(claimant.clone()),
            Holder::Maker | Holder::Nobody => None,
        })
    }

    /// Gives it to somebody, once.
    pub(crate) fn give(&self, claimant: String) -> Result<(), ApiError> {
        self.holder.with(|holder| match holder {
            Holder::Nobody => {
                *holder = Holder::Claimant(claimant);
                Ok(())
            }
            Holder::Claimant(first) => Err(ApiError::claimed_already(first)),
            Holder::Maker => Err(ApiError::conflict(
                "the sandbox was not made in advance; there is nothing to claim",
            )),
        })
    }
}
