//! What sandboxes look like from outside: their processes, found by their control group, and the
//! memory of each.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use glovebox_protocol::ids::SandboxId;

const AGENT: &str = "glovebox-agent";
const KIB_PER_MIB: f64 = 1024.0;
const BYTES_PER_MIB: f64 = 1024.0 * 1024.0;

/// What a sandbox occupies at one moment, in MiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    /// What the agent has for itself alone.
    pub(crate) agent_private_mib: f64,
    /// What Linux keeps for it: page tables, stacks, sockets, mounts.
    pub(crate) kernel_side_mib: f64,
    /// All that is charged to it, the kernel side included.
    pub(crate) charged_mib: f64,
}

/// The memory of a sandbox.
///
/// # Errors
/// When it is not there, or cannot be looked into.
pub(crate) fn memory(sandbox: SandboxId) -> Result<Memory> {
    let agent = agent(sandbox)?;
    let group = Group::of(sandbox, &agent)?;
    Ok(Memory {
        agent_private_mib: private_kib(&agent)? / KIB_PER_MIB,
        kernel_side_mib: group.kernel_side_mib()?,
        charged_mib: group.charged_mib()?,
    })
}

/// The proportional shares of everything that this program has started, launcher, template and
/// boxes, itself left out. In such a sum every page counts once.
///
/// # Errors
/// When the processes cannot be listed.
pub(crate) fn all_shares_mib() -> Result<f64> {
    let all = below(std::process::id())?;
    let kib = all.iter().map(|process| share_kib(process).unwrap_or(0.0));
    Ok(kib.sum::<f64>() / KIB_PER_MIB)
}

/// The folders in `/proc` of all processes that descend from one.
fn below(pid: u32) -> Result<Vec<PathBuf>> {
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in fs_err::read_dir("/proc")? {
        let path = entry?.path();
        // What cannot be read has ended by now, or is no process.
        if let (Some(pid), Some(parent)) = (name(&path), parent(&path)) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let (mut waiting, mut found) = (vec![pid.to_string()], Vec::new());
    while let Some(pid) = waiting.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            found.push(Path::new("/proc").join(&child));
            waiting.push(child);
        }
    }
    Ok(found)
}

fn is_named(process: &Path, name: &str) -> bool {
    // Linux keeps fifteen letters of a name.
    let name = name.get(..15).unwrap_or(name);
    fs_err::read_to_string(process.join("comm")).is_ok_and(|comm| comm.trim_end() == name)
}

/// How many agents of sandboxes descend from a process.
///
/// # Errors
/// When the processes cannot be listed.
pub(crate) fn agents_below(pid: u32) -> Result<usize> {
    let all = below(pid)?;
    Ok(all.iter().filter(|one| is_named(one, AGENT)).count())
}

/// All that a process has in memory, however many share it, in MiB.
///
/// # Errors
/// When it is not there.
pub(crate) fn resident_mib(pid: i32) -> Result<f64> {
    Ok(field_kib(&PathBuf::from(format!("/proc/{pid}/status")), "VmRSS:")? / KIB_PER_MIB)
}

/// The most memory that a process has had so far, in MiB.
///
/// # Errors
/// When it is not there.
pub(crate) fn peak_mib(pid: u32) -> Result<f64> {
    Ok(field_kib(&PathBuf::from(format!("/proc/{pid}/status")), "VmHWM:")? / KIB_PER_MIB)
}

/// Whether there is an agent that was started under the id of a sandbox: one that was kept ready
/// for somebody was not.
pub(crate) fn was_made_for(sandbox: SandboxId) -> bool {
    agent(sandbox).is_ok()
}

/// The most memory that the agent of a sandbox has had so far, in MiB.
///
/// # Errors
/// When it is not there.
pub(crate) fn agent_peak_mib(sandbox: SandboxId) -> Result<f64> {
    Ok(field_kib(&agent(sandbox)?.join("status"), "VmHWM:")? / KIB_PER_MIB)
}

/// The folder in `/proc` of a sandbox's agent.
fn agent(sandbox: SandboxId) -> Result<PathBuf> {
    let id = sandbox.to_string();
    for entry in fs_err::read_dir("/proc")? {
        let path = entry?.path();
        let read = |file: &str| fs_err::read_to_string(path.join(file)).unwrap_or_default();
        if read("comm").trim_end() == AGENT && read("cgroup").contains(&id) {
            return Ok(path);
        }
    }
    anyhow::bail!("there is no agent of the sandbox {sandbox}")
}

fn name(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_str()?.to_owned())
}

fn parent(process: &Path) -> Option<String> {
    let stat = fs_err::read_to_string(process.join("stat")).ok()?;
    // The name before it may hold anything.
    let after = stat.rsplit_once(')')?.1;
    after.split_whitespace().nth(1).map(str::to_owned)
}

/// A process's proportional share. An ordinary user may not look into an agent; then it is all that
/// the agent has in memory, which is more.
fn share_kib(process: &Path) -> Result<f64> {
    field_kib(&process.join("smaps_rollup"), "Pss:")
        .or_else(|_| field_kib(&process.join("status"), "VmRSS:"))
}

fn private_kib(process: &Path) -> Result<f64> {
    let rollup = process.join("smaps_rollup");
    match field_kib(&rollup, "Private_Dirty:") {
        Ok(dirty) => Ok(dirty + field_kib(&rollup, "Private_Clean:")?),
        Err(_) => field_kib(&process.join("status"), "VmRSS:"),
    }
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

/// The memory control group of a whole sandbox.
enum Group {
    /// A folder of version 1.
    One(PathBuf),
    /// A folder of version 2.
    Two(PathBuf),
}

impl Group {
    fn of(sandbox: SandboxId, process: &Path) -> Result<Self> {
        let id = sandbox.to_string();
        let groups = fs_err::read_to_string(process.join("cgroup"))?;
        let (controllers, path) = groups
            .lines()
            .filter_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                Some((parts.next()?, parts.next()?))
            })
            .find(|(controllers, path)| {
                let holds = controllers.split(',').any(|one| one == "memory");
                path.contains(&id) && (controllers.is_empty() || holds)
            })
            .with_context(|| format!("the sandbox {sandbox} is in no memory control group"))?;
        // Down to the folder of the whole sandbox, which the agent's and the workload's are in.
        let end = path.find(&id).map_or(path.len(), |at| at + id.len());
        let path = path[..end].trim_start_matches('/');
        Ok(if controllers.is_empty() {
            Self::Two(Path::new("/sys/fs/cgroup").join(path))
        } else {
            Self::One(Path::new("/sys/fs/cgroup/memory").join(path))
        })
    }

    /// What the memory controller has counted as the kernel's own.
    fn kernel_side_mib(&self) -> Result<f64> {
        match self {
            Self::One(folder) => number_mib(&folder.join("memory.kmem.usage_in_bytes")),
            Self::Two(folder) => {
                Ok(field_kib(&folder.join("memory.stat"), "kernel ")? / BYTES_PER_MIB)
            }
        }
    }

    fn charged_mib(&self) -> Result<f64> {
        match self {
            Self::One(folder) => number_mib(&folder.join("memory.usage_in_bytes")),
            Self::Two(folder) => number_mib(&folder.join("memory.current")),
        }
    }
}

fn number_mib(path: &Path) -> Result<f64> {
    let bytes: f64 = fs_err::read_to_string(path)?
        .trim()
        .parse()
        .with_context(|| format!("{} holds no number", path.display()))?;
    Ok(bytes / BYTES_PER_MIB)
}
