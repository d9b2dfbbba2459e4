//! The limits one sandbox is created with. All are required: there is no unlimited sandbox.

use serde::{Deserialize, Serialize};

use crate::class::ResourceClass;

const MIB: u64 = 1024 * 1024;

/// What one sandbox may use. Every number is a hard limit, enforced by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processor time in thousandths of a CPU.
    pub cpu_millis: u32,
    /// Memory for code and data, in bytes, without swap. `/tmp` and shared memory count
    /// against it; the workspace is on top.
    pub memory_bytes: u64,
    /// Processes and threads that may exist at once.
    pub processes: u32,
    /// Size of `/workspace` in bytes.
    pub workspace_bytes: u64,
    /// Files and folders that `/workspace` may hold.
    pub workspace_inodes: u64,
    /// Size of `/tmp` in bytes.
    pub tmp_bytes: u64,
    /// Size of `/dev/shm` in bytes.
    pub shm_bytes: u64,
    /// Descriptors one process may hold open.
    pub open_files: u64,
    /// Largest file that a program may write, in bytes.
    pub file_size_bytes: u64,
}

impl Limits {
    /// Workspace size when nobody asks for another, in bytes.
    pub const DEFAULT_WORKSPACE_BYTES: u64 = 1024 * MIB;

    /// The memory that the agent has for itself, in bytes.
    pub const AGENT_MEMORY_BYTES: u64 = 32 * MIB;

    /// The limits of a class with the default workspace.
    #[must_use]
    pub const fn of(class: ResourceClass) -> Self {
        Self {
            cpu_millis: class.cpu_millis(),
            memory_bytes: class.memory_bytes(),
            processes: class.processes(),
            workspace_bytes: Self::DEFAULT_WORKSPACE_BYTES,
            workspace_inodes: 65_536,
            tmp_bytes: 64 * MIB,
            shm_bytes: 64 * MIB,
            open_files: 1024,
            file_size_bytes: Self::DEFAULT_WORKSPACE_BYTES,
        }
    }

    /// Threads that numerical libraries may start by themselves: one for each CPU.
    #[must_use]
    pub const fn library_threads(&self) -> u32 {
        match self.cpu_millis.div_ceil(1000) {
            0 => 1,
            threads => threads,
        }
    }

    /// Memory limit of the workload's own control group: code and data plus the workspace,
    /// whose pages live in memory.
    #[must_use]
    pub const fn workload_memory_bytes(&self) -> u64 {
        self.memory_bytes.saturating_add(self.workspace_bytes)
    }

    /// Memory limit of the agent's control group. Files that are pushed in are written by the
    /// agent, so their pages are charged here.
    #[must_use]
    pub const fn agent_memory_bytes(&self) -> u64 {
        self.workspace_bytes
            .saturating_add(Self::AGENT_MEMORY_BYTES)
    }

    /// Memory limit of the whole sandbox.
    #[must_use]
    pub const fn sandbox_memory_bytes(&self) -> u64 {
        self.workload_memory_bytes()
            .saturating_add(Self::AGENT_MEMORY_BYTES)
    }
}

/// How many bytes may be pushed into one sandbox. The agent counts them from its creation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InputLimits {
    /// Largest single file, in bytes.
    pub file_bytes: u64,
    /// All files together, in bytes.
    pub total_bytes: u64,
}

impl Default for InputLimits {
    fn default() -> Self {
        Self {
            file_bytes: 25 * MIB,
            total_bytes: 256 * MIB,
        }
    }
}
