//! What launcher and agent say to each other: one JSON document a packet, over a socket that the
//! agent inherits.
//!
//! The launcher trusts nothing that comes from here: it takes packets of at most
//! [`MAX_FROM_AGENT`] bytes, and what an agent can ask for is bounded.

use serde::{Deserialize, Serialize};

use crate::agent_config::Claim;
use crate::sign::Epoch;

/// Longest packet of an agent, in bytes.
pub const MAX_FROM_AGENT: usize = 256;

/// Longest packet of the launcher, in bytes.
pub const MAX_TO_AGENT: usize = 64 * 1024;

/// From launcher to agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum ToAgent {
    /// The box is somebody's sandbox from now on. Obeyed once.
    Claim {
        /// Whose.
        claim: Claim,
    },
    /// A kernel from a template runs in the box. Its socket comes beside the first byte, and is
    /// the only descriptor. Comes once unasked where [`crate::agent_config::Start::Template`] was
    /// asked for, and once for each [`FromAgent::KernelWanted`].
    Kernel {
        /// Its process id inside the box. The agent is its parent.
        pid: i32,
    },
    /// There is no kernel to be had from a template; in the place of [`ToAgent::Kernel`].
    NoKernel {
        /// Why, in words.
        reason: String,
    },
    /// Start a kernel now, before anybody asks for one. In boxes that are made in advance with
    /// [`crate::agent_config::Start::Fresh`].
    PrepareKernel,
}

/// From agent to launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum FromAgent {
    /// The last kernel is gone; another one is wanted.
    KernelWanted,
    /// The first kernel takes code.
    KernelReady {
        /// The agent's boot epoch, so that nobody has to ask for it before the first request.
        epoch: Epoch,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_the_form_that_the_other_side_reads() {
        let json = |message: &ToAgent| serde_json::to_string(message).unwrap();
        assert_eq!(
            json(&ToAgent::Kernel { pid: 2 }),
            r#"{"is":"kernel","pid":2}"#
        );
        assert_eq!(json(&ToAgent::PrepareKernel), r#"{"is":"prepare_kernel"}"#);
        let wanted = r#"{"is":"kernel_wanted"}"#;
        assert_eq!(
            serde_json::from_str::<FromAgent>(wanted).unwrap(),
            FromAgent::KernelWanted
        );
        assert!(wanted.len() <= MAX_FROM_AGENT);
    }
}
