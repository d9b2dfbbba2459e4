//! Resource classes: what `SMALL`, `MEDIUM` and `LARGE` mean.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// How much of the machine one sandbox may use.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum ResourceClass {
    /// 1 CPU, 1 GiB of memory, 128 processes.
    #[default]
    Small,
    /// 2 CPUs, 2 GiB of memory, 256 processes.
    Medium,
    /// 4 CPUs, 4 GiB of memory, 512 processes.
    Large,
}

impl ResourceClass {
    /// All classes, smallest first.
    pub const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// Processor time, in thousandths of a CPU.
    #[must_use]
    pub const fn cpu_millis(self) -> u32 {
        match self {
            Self::Small => 1000,
            Self::Medium => 2000,
            Self::Large => 4000,
        }
    }

    /// Memory for code and data, in bytes. The workspace is counted on top.
    #[must_use]
    pub const fn memory_bytes(self) -> u64 {
        match self {
            Self::Small => 1024 * MIB,
            Self::Medium => 2048 * MIB,
            Self::Large => 4096 * MIB,
        }
    }

    /// Processes and threads that may exist at once.
    #[must_use]
    pub const fn processes(self) -> u32 {
        match self {
            Self::Small => 128,
            Self::Medium => 256,
            Self::Large => 512,
        }
    }

    /// The name that people write and see.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "SMALL",
            Self::Medium => "MEDIUM",
            Self::Large => "LARGE",
        }
    }
}

impl fmt::Display for ResourceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A resource class was none of the three.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{given}` is no resource class; there are SMALL, MEDIUM and LARGE")]
pub struct UnknownClass {
    given: String,
}

impl FromStr for ResourceClass {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        Self::ALL
            .into_iter()
            .find(|class| class.name().eq_ignore_ascii_case(text))
            .ok_or_else(|| UnknownClass { given: text.into() })
    }
}
