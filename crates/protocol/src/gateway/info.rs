//! What a gateway says of itself to those who hold a credential.

use serde::{Deserialize, Serialize};

use crate::capability::Capabilities;
use crate::ids::{GatewayId, InstallationId};
use crate::sign::KeyId;

/// Answer to `GET /v1/info`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Info {
    /// The protocol number that the gateway speaks.
    pub protocol: u32,
    /// The version of its program.
    pub version: String,
    /// Which gateway this is.
    pub gateway: GatewayId,
    /// Which installation it belongs to.
    pub installation: InstallationId,
    /// What makes its sandboxes: `embedded`, `docker`.
    pub runtime: String,
    /// What that can enforce.
    pub capabilities: Capabilities,
    /// Images that sandboxes may be made of. Empty where the runtime has none.
    pub images: Vec<ImageInfo>,
    /// The credentials that are accepted, the new one first.
    pub credentials: Vec<CredentialInfo>,
    /// The keys whose requests its agents obey.
    pub agent_keys: Vec<KeyId>,
    /// How much of the host is in use, and how much may be.
    pub budget: Budget,
    /// The gateway's time, in milliseconds since 1970 (UTC).
    pub time_ms: i64,
}

/// An image that may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageInfo {
    /// What the allow-list calls it.
    pub reference: String,
    /// Its content address where it is present, and what sandboxes are made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The protocol number of the agent in it, where it is present.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<u32>,
}

/// A credential by its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CredentialInfo {
    /// Which.
    pub id: KeyId,
    /// Whether this very request was signed with it.
    pub is_yours: bool,
}

/// What all sandboxes of a gateway together may take of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Sandboxes that exist.
    pub sandboxes: u32,
    /// Sandboxes that may exist.
    pub max_sandboxes: u32,
    /// Memory that they use, in bytes, with a reserve for each.
    pub memory_bytes: u64,
    /// Memory that they may use, in bytes.
    pub max_memory_bytes: u64,
}
