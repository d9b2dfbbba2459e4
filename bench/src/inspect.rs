//! What a sandbox looks like from outside: its processes, found by their control group, and the
//! memory of each.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use glovebox_protocol::ids::SandboxId;

const AGENT: &str = "glovebox-agent";
const KIB_PER_MIB: f64 = 1024.0;
const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

/// What a sandbox occupies at one moment, in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// The agent's proportional share.
    pub(crate) agent_share_mib: f64,
    /// The proportional shares of everything else that runs in it.
    pub(crate) workload_share_mib: f64,
    /// What Linux keeps for it: page tables, stacks, sockets, mounts.
    pub(crate) kernel_mib: f64,
}

impl Memory {
    /// All of it.
    pub(crate) fn total_mib(&self) -> f64 {
        self.agent_share_mib + self.workload_share_mib + self.kernel_mib
    }
}

/// The memory of a sandbox.
///
/// # Errors
/// When it is not there, or cannot be looked into.
pub(crate) fn memory(sandbox: SandboxId) -> Result<Memory> {
    let mut memory = Memory {
        agent_share_mib: 0.0,
        workload_share_mib: 0.0,
        kernel_mib: kernel_mib(sandbox)?,
    };
    for process in processes(sandbox)? {
        let share = share_kib(&process)? / KIB_PER_MIB;
        if is_agent(&process) {
            memory.agent_share_mib += share;
        } else {
            memory.workload_share_mib += share;
        }
    }
    Ok(memory)
}

/// The most memory that the agent of a sandbox has had so far, in MiB.
///
/// # Errors
/// When it is not there.
pub(crate) fn agent_peak_mib(sandbox: SandboxId) -> Result<f64> {
    let agent = processes(sandbox)?
        .into_iter()
        .find(|process| is_agent(process))
        .with_context(|| format!("there is no agent of the sandbox {sandbox}"))?;
    Ok(field_kib(&agent.join("status"), "VmHWM:")? / KIB_PER_MIB)
}

/// The folders in `/proc` of all processes of a sandbox.
fn processes(sandbox: SandboxId) -> Result<Vec<PathBuf>> {
    let name = sandbox.to_string();
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        let path = entry?.path();
        // What cannot be read has ended by now, or is no process.
        if fs_err::read_to_string(path.join("cgroup")).is_ok_and(|groups| groups.contains(&name)) {
            found.push(path);
        }
    }
    Ok(found)
}

fn is_agent(process: &Path) -> bool {
    fs_err::read_to_string(process.join("comm")).is_ok_and(|name| name.trim_end() == AGENT)
}

/// A process's proportional share. An ordinary user may not look into an agent; then it is all that
/// the agent has in memory, which is more.
fn share_kib(process: &Path) -> Result<f64> {
    field_kib(&process.join("smaps_rollup"), "Pss:")
        .or_else(|_| field_kib(&process.join("status"), "VmRSS:"))
}

fn field_kib(path: &Path, name: &str) -> Result<f64> {
    fs_err::read_to_string(path)?
        .lines()
        .find_map(|line| {
            line.strip_prefix(name)?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .with_context(|| format!("{} has no {name}", path.display()))
}

/// What the memory controller has counted as the kernel's own for the whole sandbox.
fn kernel_mib(sandbox: SandboxId) -> Result<f64> {
    let name = sandbox.to_string();
    let process = processes(sandbox)?
        .into_iter()
        .next()
        .with_context(|| format!("there is no process of the sandbox {sandbox}"))?;
    let groups = fs_err::read_to_string(process.join("cgroup"))?;
    let group = groups
        .lines()
        .filter_map(|line| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?, parts.next()?))
        })
        .find(|(controllers, path)| {
            path.contains(&name)
                && (controllers.is_empty() || controllers.split(',').any(|one| one == "memory"))
        })
        .with_context(|| format!("the sandbox {sandbox} is in no memory control group"))?;
    // Down to the folder of the whole sandbox, which the agent's and the workload's are in.
    let end = group
        .1
        .find(&name)
        .map_or(group.1.len(), |at| at + name.len());
    let path = group.1[..end].trim_start_matches('/');
    if group.0.is_empty() {
        let stat = Path::new("/sys/fs/cgroup").join(path).join("memory.stat");
        return Ok(field_kib(&stat, "kernel ")? / BYTES_PER_MIB);
    }
    let file = Path::new("/sys/fs/cgroup/memory")
        .join(path)
        .join("memory.kmem.usage_in_bytes");
    let bytes: f64 = fs_err::read_to_string(&file)?
        .trim()
        .parse()
        .with_context(|| format!("{} holds no number", file.display()))?;
    Ok(bytes / BYTES_PER_MIB)
}
