//! Sandboxes that a gateway makes before anybody asks for them.

use serde::{Deserialize, Serialize};

use crate::agent_config::Start;
use crate::limits::Limits;

/// `PUT /v1/ready`: what is to be kept ready from now on. Nothing else is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeepReady {
    /// Each kind once.
    pub kinds: Vec<KeptKind>,
}

/// So many sandboxes of one kind. A create of that kind takes one of them at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptKind {
    /// Who may be given one; as in a create.
    pub trust_domain: String,
    /// Their hard limits; as in a create.
    pub limits: Limits,
    /// How their kernels come into being; as in a create.
    #[serde(default)]
    pub start: Start,
    /// How many.
    pub count: u32,
}

/// The answer: what is kept ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptReady {
    /// How many sandboxes, of all kinds together.
    pub count: u32,
}
