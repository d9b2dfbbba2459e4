//! Z7: a sandbox that is ready is given away once at most, also across a crash.
//!
//! What is ready belongs to one launcher, and goes with it; so after a crash there is nothing that
//! could be given away a second time.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use glovebox_runtime::Start;
use glovebox_runtime_embedded::{EmbeddedRuntime, ReadyKind};
use glovebox_testkit::escape::Lab;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::lab::Embedded;

/// Set in the process that is to crash.
const VARIABLE: &str = "GLOVEBOX_ESCAPE_CRASHES";
/// How long anything here may take.
const PATIENCE: Duration = Duration::from_secs(90);
/// How many are kept ready.
const READY: u32 = 3;

/// Keeps sandboxes ready and waits until they are.
async fn keep_ready(runtime: &EmbeddedRuntime, lab: &Lab) -> Result<()> {
    let kind = ReadyKind::of(&lab.spec(Lab::small_limits()));
    runtime.keep_ready(kind.clone(), READY).await?;
    let ready = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let measured = runtime.measure().await?;
            if measured.pool(&kind).is_some_and(|pool| pool.ready == READY) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, ready)
        .await
        .context("no sandboxes become ready")?
}

/// What tells one process from every other, also from a later one with its number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    began: String,
    parent: u32,
}

impl Process {
    fn of(pid: u32) -> Option<Self> {
        let text = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold anything but is the last thing in brackets.
        let fields: Vec<_> = text.rsplit_once(") ")?.1.split(' ').collect();
        let gone = matches!(fields.first(), Some(&"Z" | &"X"));
        (!gone).then_some(())?;
        Some(Self {
            pid,
            parent: fields.get(1)?.parse().ok()?,
            began: (*fields.get(19)?).into(),
        })
    }

    fn is_there(&self) -> bool {
        Self::of(self.pid).is_some_and(|now| now.began == self.began)
    }
}

/// Everything that comes from a process, and itself.
pub(crate) fn family(pid: u32) -> Result<BTreeSet<Process>> {
    let mut all = Vec::new();
    for entry in fs_err::read_dir("/proc")? {
        let name = entry?.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        all.extend(pid.and_then(Process::of));
    }
    let mut family: BTreeSet<_> = all.iter().filter(|one| one.pid == pid).cloned().collect();
    loop {
        let more: Vec<_> = all
            .iter()
            .filter(|one| family.iter().any(|other| other.pid == one.parent))
            .filter(|one| !family.contains(*one))
            .cloned()
            .collect();
        if more.is_empty() {
            return Ok(family);
        }
        family.extend(more);
    }
}

/// This very test once more, as a process that keeps sandboxes ready until it is killed.
async fn crashing() -> Result<(Child, String)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", "pool::what_was_ready_goes_with_a_crash"])
        .arg("--nocapture")
        .env(VARIABLE, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("starting this test once more")?;
    let lines = child.stdout.take().context("no output")?;
    let mut lines = BufReader::new(lines).lines();
    let told = async {
        while let Some(line) = lines.next_line().await? {
            if let Some((_, epoch)) = line.split_once("ready, and one given away: ") {
                return Ok(epoch.to_owned());
            }
        }
        anyhow::bail!("it ended before it was ready")
    };
    let epoch = tokio::time::timeout(PATIENCE, told).await??;
    Ok((child, epoch))
}

async fn run_until_killed() -> Result<()> {
    let embedded = Embedded::start().await?;
    let lab = embedded.lab.starting(Start::Template);
    keep_ready(embedded.runtime(), &lab).await?;
    let given = lab.bare_subject(Lab::small_limits()).await?;
    let epoch = given.client.health().await?.epoch;
    println!("ready, and one given away: {epoch}");
    std::future::pending().await
}

async fn all_end(family: &BTreeSet<Process>) -> Result<()> {
    let ended = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        while family.iter().any(Process::is_there) {
            look.tick().await;
        }
    };
    tokio::time::timeout(PATIENCE, ended)
        .await
        .with_context(|| {
            let left: Vec<_> = family.iter().filter(|one| one.is_there()).collect();
            format!("of what a crashed process had started is left: {left:?}")
        })
}

#[tokio::test]
async fn what_was_ready_goes_with_a_crash() -> Result<()> {
    let own_environment = fs_err::read("/proc/self/environ")?;
    let name = VARIABLE.as_bytes();
    if own_environment.windows(name.len()).any(|part| part == name) {
        return run_until_killed().await;
    }
    let (mut child, epoch) = crashing().await?;
    let pid = child.id().context("it has ended")?;
    let before = family(pid)?;
    // The two processes of the launcher, the template, and in each sandbox an agent and a kernel.
    let least = 1 + 2 + 1 + 2 * usize::try_from(READY)?;
    ensure!(
        before.len() >= least,
        "the control failed: only {before:?} were started"
    );
    child.start_kill()?;
    child.wait().await?;
    all_end(&before).await?;

    let embedded = Embedded::start().await?;
    let lab = embedded.lab.starting(Start::Template);
    keep_ready(embedded.runtime(), &lab).await?;
    let mut epochs = BTreeSet::from([epoch]);
    for _ in 0..=READY {
        let subject = lab.bare_subject(Lab::small_limits()).await?;
        let epoch = subject.client.health().await?.epoch.to_string();
        ensure!(epochs.insert(epoch), "a sandbox was given away twice");
        subject.remove().await?;
    }
    drop(lab);
    embedded.finish().await
}

#[tokio::test]
async fn what_was_ready_goes_with_a_killed_launcher() -> Result<()> {
    let embedded = Embedded::start().await?;
    let lab = embedded.lab.starting(Start::Template);
    keep_ready(embedded.runtime(), &lab).await?;
    let given = lab.bare_subject(Lab::small_limits()).await?;
    let launchers: Vec<_> = family(std::process::id())?
        .into_iter()
        .filter(|one| one.parent == std::process::id())
        .collect();
    let [launcher] = &launchers[..] else {
        anyhow::bail!("the launcher is one of {launchers:?}");
    };
    let before = family(launcher.pid)?;
    let pid = Pid::from_raw(launcher.pid.cast_signed()).context("no process")?;
    kill_process(pid, Signal::KILL)?;
    all_end(&before).await?;
    // Nothing is given away any more, and nothing is said to run.
    let again = lab.bare_subject(Lab::small_limits()).await;
    ensure!(again.is_err(), "a sandbox was made by nobody");
    ensure!(
        given.client.health().await.is_err(),
        "a sandbox outlived its launcher"
    );
    Ok(())
}
