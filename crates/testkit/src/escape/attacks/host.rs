//! What the host sees of a sandbox's processes, on runtimes whose sandboxes run on this machine.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::process::{Argument, StartProcess};
use glovebox_runtime::SandboxState;

use super::super::batch::{self, Position};
use crate::escape::lab::{Lab, Subject};
use crate::escape::report::{Red, demand};

/// Threads that an agent may have.
pub const AGENT_THREADS: u64 = 16;

/// The capabilities of an agent with an id of its own: SETUID, SETGID, KILL.
pub(crate) const AGENT_CAPABILITIES: u64 = 0xe0;

/// A process of a sandbox, as the host sees it.
#[derive(Debug)]
struct Process {
    folder: PathBuf,
    /// Its id within the sandbox.
    inner: u64,
}

impl Process {
    fn status(&self, field: &str) -> Result<String> {
        let text = fs_err::read_to_string(self.folder.join("status"))?;
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        Ok(line
            .with_context(|| format!("no `{field}`"))?
            .trim()
            .to_owned())
    }
}

/// Where a sandbox's processes are. Asked for while a program can still be started in it, it tells
/// of them when none can.
#[derive(Debug, Clone)]
pub struct Place(Whereabouts);

#[derive(Debug, Clone)]
enum Whereabouts {
    /// In this namespace of processes.
    Namespace(u64),
    /// In these control groups. Where the runtime is another user's, as a container engine is to
    /// who is not root, its namespaces are closed, and its control groups are not.
    Groups(String),
}

impl Place {
    /// Has the sandbox say it.
    ///
    /// # Errors
    /// When it does not, or nothing of it is to be seen on this machine.
    pub async fn of(subject: &Subject) -> Result<Self> {
        let namespace = Self(Whereabouts::Namespace(place(subject).await?));
        if !namespace.processes()?.is_empty() {
            return Ok(namespace);
        }
        let groups = Self(Whereabouts::Groups(groups(subject).await?));
        ensure!(
            !groups.processes()?.is_empty(),
            "nothing of the sandbox is to be seen on this machine"
        );
        Ok(groups)
    }

    /// How many threads the host sees there, the agent's included.
    ///
    /// # Errors
    /// When this machine cannot be read.
    pub fn threads(&self) -> Result<u64> {
        let threads = |process: Process| process.status("Threads").ok()?.parse::<u64>().ok();
        Ok(self.processes()?.into_iter().filter_map(threads).sum())
    }

    fn processes(&self) -> Result<Vec<Process>> {
        // What cannot be read has ended, or is nobody's process.
        processes_that(|folder| match &self.0 {
            Whereabouts::Namespace(wanted) => {
                let facts = fs_err::metadata(folder.join("ns/pid"));
                facts.is_ok_and(|facts| facts.ino() == *wanted)
            }
            Whereabouts::Groups(wanted) => {
                let groups = fs_err::read_to_string(folder.join("cgroup"));
                groups.is_ok_and(|groups| groups == *wanted)
            }
        })
    }
}

/// The control groups of a program of the sandbox, which is found by a word on its command line.
async fn groups(subject: &Subject) -> Result<String> {
    let word = format!("seen-from-outside-{}", SandboxId::new());
    let code = "import time; print('up', flush=True); time.sleep(60)";
    let start = StartProcess {
        execution: ExecutionId::new(),
        argv: ["python3", "-c", code, &word].map(Argument::from).into(),
        env: Default::default(),
        stdin: Default::default(),
        time_limit_ms: 60_000,
        output_limit_bytes: None,
    };
    let mut running = subject.client.run(&start).await?;
    while let Some(event) = running.next().await? {
        if matches!(event, EventBody::Stdout(_)) {
            break;
        }
    }
    let found = processes_that(|folder| {
        let words = fs_err::read(folder.join("cmdline")).unwrap_or_default();
        words
            .split(|byte| *byte == 0)
            .any(|it| it == word.as_bytes())
    })?;
    let program = found
        .first()
        .context("a program of the sandbox is not to be seen")?;
    Ok(fs_err::read_to_string(program.folder.join("cgroup"))?)
}

/// The processes of a sandbox.
async fn processes(subject: &Subject) -> Result<Vec<Process>> {
    Place::of(subject).await?.processes()
}

async fn place(subject: &Subject) -> Result<u64> {
    let reports = batch::reports(subject, Position::First, &["K1"], Default::default()).await?;
    let namespaces = reports.iter().find(|report| report.id == "K1/namespaces");
    namespaces
        .and_then(|report| report.observed["pid"].as_u64())
        .context("the sandbox did not say its namespace of processes")
}

/// Every process of which this is so.
fn processes_that(is_so: impl Fn(&Path) -> bool) -> Result<Vec<Process>> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        let folder = entry?.path();
        if !is_so(&folder) {
            continue;
        }
        let process = Process { folder, inner: 0 };
        let Ok(ids) = process.status("NSpid") else {
            continue;
        };
        let inner = ids
            .split_whitespace()
            .next_back()
            .and_then(|id| id.parse().ok());
        found.push(Process {
            inner: inner.unwrap_or(0),
            ..process
        });
    }
    Ok(found)
}

/// How many threads of a sandbox the host sees, the agent's included.
///
/// # Errors
/// When the sandbox does not say who it is.
pub async fn threads_of(subject: &Subject) -> Result<u64> {
    Place::of(subject).await?.threads()
}

/// The agent of a sandbox, as the host sees it.
#[derive(Debug)]
pub struct Agent(Process);

impl Agent {
    /// Finds it.
    ///
    /// # Errors
    /// When it is not to be seen.
    pub async fn of(subject: &Subject) -> Result<Self> {
        let all = processes(subject).await?;
        let agent = all.into_iter().find(|process| process.inner == 1);
        Ok(Self(
            agent.context("the agent is not to be seen on this host")?,
        ))
    }

    /// Its process id on the host.
    ///
    /// # Errors
    /// When it has none.
    pub fn pid(&self) -> Result<i32> {
        let name = self.0.folder.file_name().and_then(|name| name.to_str());
        Ok(name.context("a process without a number")?.parse()?)
    }

    /// Where the host tells about it.
    #[must_use]
    pub fn folder(&self) -> &std::path::Path {
        &self.0.folder
    }

    /// Its open descriptors and what they are; nothing where it is closed even to the user who
    /// launched it. Root sees them.
    ///
    /// # Errors
    /// When they cannot be read for another reason.
    pub fn open(&self) -> Result<Option<Vec<(String, String)>>> {
        let Some(entries) = unless_closed(fs_err::read_dir(self.0.folder.join("fd")))? else {
            return Ok(None);
        };
        let mut open = Vec::new();
        for entry in entries {
            let entry = entry?;
            // What is closed meanwhile is none.
            if let Ok(target) = fs_err::read_link(entry.path()) {
                let number = entry.file_name().to_string_lossy().into_owned();
                open.push((number, target.to_string_lossy().into_owned()));
            }
        }
        Ok(Some(open))
    }

    /// Memory that it holds, in bytes.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn resident_bytes(&self) -> Result<u64> {
        let text = self.0.status("VmRSS")?;
        let kibibytes: u64 = text.trim_end_matches(" kB").trim().parse()?;
        Ok(kibibytes * 1024)
    }

    /// The ids of the host that the sandbox has.
    ///
    /// # Errors
    /// When its map cannot be read.
    pub fn host_ids(&self) -> Result<Vec<u32>> {
        let map = fs_err::read_to_string(self.0.folder.join("uid_map"))?;
        map.lines()
            .map(|row| {
                let outer = row.split_whitespace().nth(1).context("a map without ids")?;
                Ok(outer.parse()?)
            })
            .collect()
    }

    /// What somebody could read of it: command line, and environment where that is not closed.
    ///
    /// # Errors
    /// When they cannot be read for another reason.
    pub fn words(&self) -> Result<Vec<u8>> {
        let mut words = fs_err::read(self.0.folder.join("cmdline"))?;
        let environment = unless_closed(fs_err::read(self.0.folder.join("environ")))?;
        words.extend(environment.unwrap_or_default());
        Ok(words)
    }
}

/// Tells what is closed to this user from what failed.
fn unless_closed<T>(read: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(None),
        Err(error) => Err(error),
    }
}

/// Where the host tells about a program of the sandbox.
///
/// # Errors
/// When none runs.
pub(crate) async fn workload_of(subject: &Subject) -> Result<PathBuf> {
    let all = processes(subject).await?;
    let program = all.into_iter().find(|process| process.inner > 1);
    Ok(program.context("no program runs in the sandbox")?.folder)
}

/// Z3, Z5 and K3 for a process that kernels are copied from: one thread, no capability, open only
/// what it needs.
///
/// # Errors
/// When it is not to be seen.
pub fn template_is_bare(pid: i32) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let template = Process {
        folder: PathBuf::from(format!("/proc/{pid}")),
        inner: 0,
    };
    let threads = template.status("Threads")?;
    demand(&mut reds, "Z5", threads == "1", || {
        format!("the template has {threads} threads")
    });
    for field in ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"] {
        let set = template.status(field)?;
        demand(&mut reds, "K3", u64::from_str_radix(&set, 16)? == 0, || {
            format!("the template's {field} is {set}")
        });
    }
    let privileges = template.status("NoNewPrivs")?;
    demand(&mut reds, "K4", privileges == "1", || {
        "the template may gain privileges".into()
    });
    let Some(open) = Agent(template).open()? else {
        // Closed even to whoever launched it; as root this check sees more.
        return Ok(reds);
    };
    let expected = [
        ("0", "/dev/null"),
        ("1", "/dev/null"),
        ("2", "/dev/null"),
        ("3", "socket:"),
    ];
    let declared = open.len() == expected.len()
        && expected.iter().all(|(number, kind)| {
            open.iter()
                .any(|(other, what)| other == number && what.starts_with(kind))
        });
    demand(&mut reds, "Z3", declared, || {
        format!("the template has open {open:?}")
    });
    Ok(reds)
}

/// K2, K3, K4 and S2 as the host sees them, for the agent and a program at once.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn every_process_is_sealed(lab: &Lab) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let mut running = subject
        .start_probe("sibling.py", &["hold", "process", "word"])
        .await?;
    running.until("ready").await?;
    let all = processes(&subject).await?;
    demand(&mut reds, "K4", all.len() >= 2, || {
        format!("the control failed: {} processes were seen", all.len())
    });
    let two_ids = batch::facts(lab, &subject, Position::First)?.two_ids;
    for process in &all {
        let who = format!("process {} of the sandbox", process.inner);
        let status = |field: &str| process.status(field);
        let kept = if process.inner == 1 && two_ids {
            AGENT_CAPABILITIES
        } else {
            0
        };
        for field in ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"] {
            let set = u64::from_str_radix(&status(field)?, 16)?;
            let allowed = if field == "CapBnd" { 0 } else { kept };
            demand(&mut reds, "K3", set & !allowed == 0, || {
                format!("{who}: {field} is {set:x}")
            });
        }
        let sealed = status("NoNewPrivs")? == "1" && status("Seccomp")? == "2";
        demand(&mut reds, "K4", sealed, || format!("{who} is not sealed"));
        for field in ["Uid", "Gid"] {
            let ids = status(field)?;
            let root = ids.split_whitespace().any(|id| id == "0");
            demand(&mut reds, "K2", !root, || {
                format!("{who}: {field} is {ids}")
            });
        }
        let groups = status("Groups")?;
        demand(&mut reds, "K2", groups.is_empty(), || {
            format!("{who}: groups {groups}")
        });
    }
    let ids = Agent::of(&subject).await?.host_ids()?;
    demand(&mut reds, "K2", !ids.contains(&0), || {
        format!("host ids {ids:?}")
    });
    running.interrupt().await?;
    subject.remove().await?;
    Ok(reds)
}

/// R15 and A21: an agent that is gone is noticed, named, and never reached again.
///
/// `kill` ends a process of the host.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn agent_is_killed(lab: &Lab, kill: impl Fn(i32) -> Result<()>) -> Result<Vec<Red>> {
    let mut reds = Vec::new();
    let subject = lab.subject(Lab::small_limits()).await?;
    let id = subject.id;
    let mut running = subject
        .start_probe("hostile.py", &["wait-for", "sleep"])
        .await?;
    running.until("control").await?;
    kill(Agent::of(&subject).await?.pid()?)?;
    let cut = tokio::time::timeout(Duration::from_secs(20), running.to_end()).await;
    demand(&mut reds, "R15", matches!(cut, Ok(Err(_))), || {
        "the stream of a sandbox that was ended went on".into()
    });
    let reason = until_ended(lab, id).await?;
    demand(&mut reds, "R15", !reason.is_empty(), || {
        "no reason is given".into()
    });
    let connected = lab.runtime.connect(id).await.is_ok();
    demand(&mut reds, "A21", !connected, || {
        "an ended sandbox can be connected to".into()
    });
    let again = lab.client_of(id).health().await;
    demand(&mut reds, "A21", again.is_err(), || {
        "an ended sandbox answers".into()
    });
    subject.remove().await?;
    Ok(reds)
}

async fn until_ended(lab: &Lab, id: SandboxId) -> Result<String> {
    let asking = async {
        loop {
            match lab.runtime.inspect(id).await?.state {
                SandboxState::Ended { reason } => return Ok(reason),
                SandboxState::Running => tokio::task::yield_now().await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking)
        .await
        .context("the end of the sandbox was not noticed")?
}
