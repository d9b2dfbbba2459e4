//! Kinds of sandboxes, for those that are made before anybody asks for them.

use glovebox_protocol::limits::Limits;

use crate::spec::{SandboxSpec, Start};

/// What sandboxes have in common that can stand in for each other: one that is ready is given to
/// whoever asks for a sandbox of the same kind, whatever its id, keys and deadlines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyKind {
    /// Who may share a template with whom; see [`SandboxSpec::trust_domain`].
    pub trust_domain: String,
    /// How their kernels come into being.
    pub start: Start,
    /// Hard limits.
    pub limits: Limits,
}

impl ReadyKind {
    /// The kind that a sandbox of this spec is of.
    #[must_use]
    pub fn of(spec: &SandboxSpec) -> Self {
        Self {
            trust_domain: spec.trust_domain.clone(),
            start: spec.start,
            limits: spec.limits.clone(),
        }
    }
}
