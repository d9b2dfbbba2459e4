//! Protections that a machine may be unable to give, by name.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A protection that is missing. Each refuses the start, unless it was accepted by this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weakness {
    /// No limit on memory.
    MemoryLimit,
    /// Memory is limited and swap is not.
    SwapLimit,
    /// No limit on processor time.
    CpuLimit,
    /// No limit on the number of processes.
    ProcessLimit,
    /// No Landlock: the mounts alone keep files apart.
    Landlock,
    /// The kernel is older than the oldest that is supported.
    OldKernel,
}

impl Weakness {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::MemoryLimit,
        Self::SwapLimit,
        Self::CpuLimit,
        Self::ProcessLimit,
        Self::Landlock,
        Self::OldKernel,
    ];

    /// The name that people write after `--accept-weaker=`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemoryLimit => "memory-limit",
            Self::SwapLimit => "swap-limit",
            Self::CpuLimit => "cpu-limit",
            Self::ProcessLimit => "process-limit",
            Self::Landlock => "landlock",
            Self::OldKernel => "old-kernel",
        }
    }

    /// What goes without it, in words.
    #[must_use]
    pub const fn what_is_lost(self) -> &'static str {
        match self {
            Self::MemoryLimit => "one sandbox can use up the machine's memory",
            Self::SwapLimit => "one sandbox can use up the machine's swap",
            Self::CpuLimit => "one sandbox can take all processor time",
            Self::ProcessLimit => "one sandbox can use up the machine's process ids",
            Self::Landlock => "a second wall around files and signals is missing",
            Self::OldKernel => "known holes of the kernel may be open",
        }
    }
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name is no weakness that can be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{given}` is no protection that can be gone without; there are {}",
    names()
)]
pub struct UnknownWeakness {
    given: String,
}

fn names() -> String {
    Weakness::ALL.map(Weakness::name).join(", ")
}

impl FromStr for Weakness {
    type Err = UnknownWeakness;

    fn from_str(text: &str) -> Result<Self, UnknownWeakness> {
        Self::ALL
            .into_iter()
            .find(|weakness| weakness.name() == text)
            .ok_or_else(|| UnknownWeakness { given: text.into() })
    }
}
