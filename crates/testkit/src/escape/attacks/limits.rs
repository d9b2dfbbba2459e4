//! What the host has set for a sandbox: control groups, descriptors of the agent, ids.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::host::{self, Agent};
use crate::escape::lab::Lab;
use crate::escape::report::{Red, demand};

/// R1, R2 and R8 as the host has them written down: limits of memory, swap, processes and
/// processor time, the workload's apart from the agent's.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn control_groups(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let mut running = subject
        .start_probe("sibling.py", &["hold", "process", "word"])
        .await?;
    running.until("ready").await?;
    let agent = Groups::of(Agent::of(&subject).await?.folder())?;
    let workload = Groups::of(&host::workload_of(&subject).await?)?;
    let limits = &subject.limits;
    let memory = workload.number("memory", &["memory.limit_in_bytes", "memory.max"])?;
    demand(
        &mut reds,
        "R2",
        memory == Some(limits.workload_memory_bytes()),
        || format!("the workload's memory limit is {memory:?}"),
    );
    let whole = agent.number("memory", &["memory.limit_in_bytes", "memory.max"])?;
    demand(
        &mut reds,
        "R2",
        whole.is_some_and(|n| n <= limits.agent_memory_bytes()),
        || format!("the agent's memory limit is {whole:?}"),
    );
    // Version 1 counts memory and swap together, version 2 swap alone.
    let both = workload.number("memory", &["memory.memsw.limit_in_bytes"])?;
    let swap = workload.number("memory", &["memory.swap.max"])?;
    demand(&mut reds, "R2", both == memory || swap == Some(0), || {
        format!("the workload's limit of memory and swap is {both:?}, of swap {swap:?}")
    });
    let processes = workload.nearest("pids", "pids.max")?;
    let expected = u64::from(limits.processes);
    demand(
        &mut reds,
        "R1",
        processes.is_some_and(|n| n <= expected + 32),
        || format!("the workload's limit of processes is {processes:?}"),
    );
    let quota = workload.processor_time();
    let expected = f64::from(limits.cpu_millis) / 1000.0;
    demand(
        &mut reds,
        "R8",
        quota.is_some_and(|n| n <= expected),
        || format!("the workload's share of processors is {quota:?}, should be {expected}"),
    );
    demand(
        &mut reds,
        "R2",
        agent.path("memory") != workload.path("memory"),
        || "the workload is in the agent's control group".into(),
    );
    running.interrupt().await?;
    subject.remove().await?;
    Ok(reds)
}

/// The control groups of a process: `controller` to folder.
pub(crate) struct Groups(Vec<(String, PathBuf)>);

impl Groups {
    pub(crate) fn of(process: &Path) -> Result<Self> {
        let text = fs_err::read_to_string(process.join("cgroup"))?;
        let rows = text.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            Some((
                fields.next()?.to_owned(),
                fields.next()?.trim_start_matches('/').to_owned(),
            ))
        });
        Ok(Self(
            rows.flat_map(|(controllers, path)| {
                let names: Vec<_> = controllers.split(',').map(str::to_owned).collect();
                names
                    .into_iter()
                    .map(move |name| (name, PathBuf::from(&path)))
            })
            .collect(),
        ))
    }

    fn path(&self, controller: &str) -> Option<PathBuf> {
        // On version 2 there is one group for all, and its row names no controller.
        let row = self.0.iter().find(|(name, _)| name == controller);
        if let Some((name, path)) = row {
            return Some(Path::new("/sys/fs/cgroup").join(name).join(path));
        }
        let unified = self.0.iter().find(|(name, _)| name.is_empty())?;
        Some(Path::new("/sys/fs/cgroup").join(&unified.1))
    }

    pub(crate) fn number(&self, controller: &str, files: &[&str]) -> Result<Option<u64>> {
        let folder = self
            .path(controller)
            .context("a process without control groups")?;
        Ok(files.iter().find_map(|file| {
            let text = fs_err::read_to_string(folder.join(file)).ok()?;
            text.trim().parse().ok()
        }))
    }

    /// How many processors the group, or the first one above that has a limit, may use.
    fn processor_time(&self) -> Option<f64> {
        self.path("cpu")?.ancestors().find_map(|folder| {
            let read = |file: &str| fs_err::read_to_string(folder.join(file)).ok();
            let (quota, period) = match read("cpu.max") {
                Some(text) => {
                    let (quota, period) = text.trim().split_once(' ')?;
                    (quota.parse::<f64>().ok()?, period.parse::<f64>().ok()?)
                }
                None => {
                    let quota: f64 = read("cpu.cfs_quota_us")?.trim().parse().ok()?;
                    (quota, read("cpu.cfs_period_us")?.trim().parse().ok()?)
                }
            };
            (quota > 0.0).then_some(quota / period)
        })
    }

    /// The limit of the group or of the first one above that has any.
    fn nearest(&self, controller: &str, file: &str) -> Result<Option<u64>> {
        let folder = self
            .path(controller)
            .context("a process without control groups")?;
        Ok(folder
            .ancestors()
            .take_while(|path| path.starts_with("/sys/fs/cgroup"))
            .find_map(|path| {
                fs_err::read_to_string(path.join(file))
                    .ok()?
                    .trim()
                    .parse()
                    .ok()
            }))
    }
}

/// K9 for the agent: nothing but what it needs is open, and nothing of it leads outside.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn agent_descriptors(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let Some(open) = Agent::of(&subject).await?.open()? else {
        // Closed even to whoever launched it; as root this test sees more.
        subject.remove().await?;
        return Ok(reds);
    };
    demand(&mut reds, "K9", open.len() > 3, || {
        format!("the control failed: open are {open:?}")
    });
    for (number, what) in &open {
        let plain = [
            "socket:",
            "pipe:",
            "anon_inode:[event",
            "anon_inode:[pidfd",
            "anon_inode:[signalfd",
        ]
        .iter()
        .any(|kind| what.starts_with(kind));
        // The workload's door into its control groups, and where kills are counted.
        let group = [
            "cgroup.procs",
            "tasks",
            "memory.oom_control",
            "memory.events",
        ]
        .iter()
        .any(|file| what.ends_with(&format!("/{file}")));
        // Its configuration, which holds no secret, lies in memory.
        let config = what.starts_with("/memfd:agent-config");
        let own = config || what == "/dev/null" || what == "/workspace" || what == "/proc";
        demand(&mut reds, "K9", plain || group || own, || {
            format!("the agent's descriptor {number} is {what}")
        });
    }
    subject.remove().await?;
    Ok(reds)
}

/// K2: two sandboxes have no id of the host in common.
///
/// # Errors
/// When the sandboxes cannot be made or do not play along.
pub async fn ids_differ(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let first = lab.subject(Lab::small_limits()).await?;
    let second = lab.subject(Lab::small_limits()).await?;
    let ids = Agent::of(&first).await?.host_ids()?;
    let others = Agent::of(&second).await?.host_ids()?;
    let one_id = ids.len() == 1;
    let common = ids.iter().any(|id| others.contains(id));
    demand(&mut reds, "K2", one_id || !common, || {
        format!("two sandboxes have the host's ids {ids:?} and {others:?}")
    });
    first.remove().await?;
    second.remove().await?;
    Ok(reds)
}
