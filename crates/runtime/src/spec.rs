//! What a sandbox is asked to be.

pub use glovebox_protocol::agent_config::Start;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::PublicKey;
use serde::{Deserialize, Serialize};

/// What a sandbox is asked to be. There is no field for a mount, a device, a network or a
/// privilege, and none will come: they cannot be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SandboxSpec {
    /// Chosen by the caller.
    pub id: SandboxId,
    /// Which installation it belongs to.
    pub installation: InstallationId,
    /// Whose requests the agent obeys: one key, or two during a rotation.
    pub keys: Vec<PublicKey>,
    /// What it is made of, where the runtime makes sandboxes of images; see
    /// [`Examined::images`](crate::Examined). `None`: what the runtime has.
    #[serde(default)]
    pub image: Option<String>,
    /// Hard limits.
    pub limits: Limits,
    /// How much may be pushed in.
    pub input_limits: InputLimits,
    /// Who may share a warm start with whom: an organization's id, else a workspace's. Sandboxes
    /// of different domains never come from one template.
    pub trust_domain: String,
    /// How the kernel comes into being.
    #[serde(default)]
    pub start: Start,
    /// After so many milliseconds without a request or a running program, what runs is ended and
    /// the workspace kept: the next execute gets a new kernel and is told so. `None`: never.
    #[serde(default)]
    pub idle_limit_ms: Option<u64>,
    /// Made in advance: until it is claimed its agent obeys nothing else; see
    /// [`Claim::is_unclaimed`](glovebox_protocol::agent_config::Claim).
    #[serde(default)]
    pub is_unclaimed: bool,
    /// When the sandbox has to be gone, in milliseconds since 1970 (UTC). Fixed at creation.
    pub hard_deadline_ms: Option<i64>,
}

/// A spec that can be made: its numbers are in range and its lists not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatedSpec(SandboxSpec);

/// Something in a spec is out of range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{field}` is {given}; it must be {must}")]
pub struct InvalidSpec {
    /// Which field.
    pub field: &'static str,
    /// What it is.
    pub given: String,
    /// What it must be.
    pub must: &'static str,
}

const MIB: u64 = 1024 * 1024;
const TIB: u64 = 1024 * 1024 * MIB;

impl SandboxSpec {
    /// Checks every number.
    ///
    /// # Errors
    /// The first field that is out of range.
    pub fn validate(self) -> Result<ValidatedSpec, InvalidSpec> {
        check_limits(&self.limits)?;
        if !matches!(self.keys.len(), 1 | 2) {
            return Err(InvalidSpec {
                field: "keys",
                given: format!("a list of {}", self.keys.len()),
                must: "one key, or two during a rotation",
            });
        }
        if self.trust_domain.is_empty() {
            return Err(InvalidSpec {
                field: "trust_domain",
                given: "empty".into(),
                must: "the id of an organization or workspace",
            });
        }
        Ok(ValidatedSpec(self))
    }
}

/// Checks every number of limits.
///
/// # Errors
/// The first that is out of range.
pub fn check_limits(limits: &Limits) -> Result<(), InvalidSpec> {
    let ranges: [(
        &'static str,
        u64,
        std::ops::RangeInclusive<u64>,
        &'static str,
    ); 9] = [
        (
            "cpu_millis",
            limits.cpu_millis.into(),
            10..=1_024_000,
            "10 to 1 024 000",
        ),
        (
            "memory_bytes",
            limits.memory_bytes,
            64 * MIB..=TIB,
            "64 MiB to 1 TiB",
        ),
        (
            "processes",
            limits.processes.into(),
            8..=32_768,
            "8 to 32 768",
        ),
        (
            "workspace_bytes",
            limits.workspace_bytes,
            MIB..=TIB,
            "1 MiB to 1 TiB",
        ),
        (
            "workspace_inodes",
            limits.workspace_inodes,
            16..=100_000_000,
            "16 to 100 million",
        ),
        ("tmp_bytes", limits.tmp_bytes, MIB..=TIB, "1 MiB to 1 TiB"),
        ("shm_bytes", limits.shm_bytes, MIB..=TIB, "1 MiB to 1 TiB"),
        (
            "open_files",
            limits.open_files,
            64..=1_048_576,
            "64 to 1 048 576",
        ),
        (
            "file_size_bytes",
            limits.file_size_bytes,
            MIB..=TIB,
            "1 MiB to 1 TiB",
        ),
    ];
    for (field, given, range, must) in ranges {
        if !range.contains(&given) {
            return Err(InvalidSpec {
                field,
                given: given.to_string(),
                must,
            });
        }
    }
    Ok(())
}

impl ValidatedSpec {
    /// The spec.
    #[must_use]
    pub const fn get(&self) -> &SandboxSpec {
        &self.0
    }

    /// The spec, owned.
    #[must_use]
    pub fn into_inner(self) -> SandboxSpec {
        self.0
    }
}
