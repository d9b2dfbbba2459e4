//! What a runtime can enforce.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Something a runtime can promise of every sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Memory is limited, without swap.
    MemoryLimit,
    /// Processor time is limited.
    CpuLimit,
    /// The number of processes is limited.
    ProcessLimit,
    /// The workspace is limited in bytes.
    WorkspaceBytes,
    /// The workspace is limited in files.
    WorkspaceInodes,
    /// No network of any kind.
    NoNetwork,
    /// Agent and workload have ids of their own.
    SeparateIds,
    /// A sandbox's workspace outlives its processes.
    KeepsWorkspace,
    /// Ending one execution leaves other executions of the sandbox running.
    EndsSingleExecution,
    /// An execution whose stream is cut because the gateway ended goes on, and can be looked up by
    /// its id. Without this it is ended, and is looked up as that.
    KeepsExecutions,
    /// A kernel can be a copy of a process that has the libraries loaded already; see
    /// [`Start::Template`](crate::agent_config::Start::Template).
    TemplateStart,
    /// A second kernel stands between the code and the host's.
    SecondKernel,
}

impl Capability {
    /// All that there are, in a fixed order.
    pub const ALL: [Self; 12] = [
        Self::MemoryLimit,
        Self::CpuLimit,
        Self::ProcessLimit,
        Self::WorkspaceBytes,
        Self::WorkspaceInodes,
        Self::NoNetwork,
        Self::SeparateIds,
        Self::KeepsWorkspace,
        Self::EndsSingleExecution,
        Self::KeepsExecutions,
        Self::TemplateStart,
        Self::SecondKernel,
    ];
}

/// The capabilities of one runtime.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Capabilities(BTreeSet<Capability>);

impl Capabilities {
    /// Whether the runtime promises this.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        self.0.contains(&capability)
    }

    /// All that it promises, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}
