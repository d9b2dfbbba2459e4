//! The batch of harmless probes, run from each place where code runs in a sandbox.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use glovebox_protocol::process::Argument;
use glovebox_runtime::Capability;

use super::attacks::host::AGENT_CAPABILITIES;
use super::expect::{self, Expectation, Facts};
use super::expectations;
use super::lab::{Lab, PROBE_FOLDER, Subject, probe_argv};
use super::report::{Red, Report, demand};
use super::run::Ran;

/// Where the probes run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// The first program of a fresh sandbox.
    First,
    /// A later program, in a sandbox that was used and misused.
    Used,
    /// A grandchild that has left its session and lost its parent.
    Detached,
    /// Inside the kernel, in its first cell.
    Kernel,
    /// Inside a kernel in the place of one that crashed, after it was misused.
    UsedKernel,
    /// A grandchild of the kernel that has left its session and lost its parent.
    DetachedKernel,
    /// A program that the kernel starts.
    ProgramOfKernel,
}

impl Position {
    /// Whether the probes run in a process that is the kernel, or a copy of it.
    const fn is_kernel(self) -> bool {
        matches!(self, Self::Kernel | Self::UsedKernel | Self::DetachedKernel)
    }

    /// The word that has the probes run there.
    const fn word(self) -> Option<&'static str> {
        match self {
            Self::Detached | Self::DetachedKernel => Some("--detached"),
            Self::ProgramOfKernel => Some("--program"),
            Self::First | Self::Used | Self::Kernel | Self::UsedKernel => None,
        }
    }
}

/// Runs the whole batch from one position in a sandbox of its own.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn run(lab: &Lab, position: Position) -> Result<Vec<Red>> {
    run_checks(lab, position, &[]).await
}

/// Runs the probes of some checks from one position in a sandbox of its own.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn run_checks(lab: &Lab, position: Position, only: &[&str]) -> Result<Vec<Red>> {
    let subject = lab.subject(Lab::small_limits()).await?;
    match position {
        Position::Used => misuse(&subject).await?,
        Position::UsedKernel => misuse_kernel(&subject).await?,
        _ => {}
    }
    let reports = reports(&subject, position, only, BTreeMap::new()).await?;
    let facts = facts(lab, &subject, position)?;
    let mut table = expectations::of_checks(only);
    table.retain(|expectation| !needs_listeners(expectation));
    let reds = expect::judge(&table, &reports, &facts);
    subject.still_works().await?;
    subject.remove().await?;
    Ok(reds)
}

/// Runs the probes that walk the whole tree, which is the same wherever they run.
///
/// # Errors
/// When the sandbox cannot be made or does not play along.
pub async fn run_walks(lab: &Lab) -> Result<Vec<Red>> {
    let subject = lab.subject(Lab::small_limits()).await?;
    let table = expectations::of_walks();
    let checks = ["walk/K5", "walk/F1", "walk/F9", "walk/K18", "walk/S7"];
    let reports = reports(&subject, Position::First, &checks, BTreeMap::new()).await?;
    let facts = facts(lab, &subject, Position::First)?;
    subject.remove().await?;
    Ok(expect::judge(&table, &reports, &facts))
}

/// What an agent that was taken over must not be able to do either.
const OF_AGENTS: [&str; 7] = ["K6", "K7", "K11", "K12", "K13", "K14", "N10"];

/// The checks whose probes are to be run in the place of an agent.
#[must_use]
pub fn checks_of_agents() -> Vec<&'static str> {
    OF_AGENTS.into_iter().chain(["K3", "K20"]).collect()
}

/// Judges what probes reported that ran in the place of an agent.
///
/// # Errors
/// When this machine cannot be read.
pub fn judge_agent(lab: &Lab, reports: &[Report]) -> Result<Vec<Red>> {
    let mut facts = Facts::of_host(Lab::small_limits())?;
    facts.landlock_abi = lab.landlock_abi();
    let mut table = expectations::of_checks(&checks_of_agents());
    // Its own programs are an agent's to run, and it has three capabilities.
    let own = |id: &str| {
        ["K20/read ", "K20/run ", "K3/"]
            .iter()
            .any(|beginning| id.starts_with(beginning))
    };
    table.retain(|expectation| !own(expectation.id));
    let (special, common): (Vec<_>, Vec<_>) =
        reports.iter().cloned().partition(|report| own(&report.id));
    let mut reds = expect::judge(&table, &common, &facts);
    let threads = special.iter().find(|report| report.id == "K3/threads");
    let sets = threads.map(|report| report.observed[0].clone());
    let few = sets.as_ref().is_some_and(|sets| {
        (0..5).all(|index| {
            let set = sets[index]
                .as_str()
                .and_then(|set| u64::from_str_radix(set, 16).ok());
            // The bounding set is the fourth, and empty.
            let allowed = if index == 3 { 0 } else { AGENT_CAPABILITIES };
            set.is_some_and(|set| set & !allowed == 0)
        })
    });
    demand(&mut reds, "K3", few, || {
        format!("the capabilities of an agent are {sets:?}")
    });
    Ok(reds)
}

/// Judges what a program reported that an agent started while it had more descriptors open than
/// a program may have.
///
/// # Errors
/// When this machine cannot be read.
pub fn judge_program_of_agent(lab: &Lab, reports: &[Report]) -> Result<Vec<Red>> {
    let mut facts = Facts::of_host(Lab::small_limits())?;
    facts.landlock_abi = lab.landlock_abi();
    Ok(expect::judge(
        &expectations::of_checks(&["K9"]),
        reports,
        &facts,
    ))
}

/// Probes that only mean something when the harness has opened listeners for them.
fn needs_listeners(expectation: &Expectation) -> bool {
    ["N4/a listener of the host", "N8/of the host"].contains(&expectation.id)
}

/// What the probes of some checks report, all with none named.
///
/// # Errors
/// When the sandbox does not play along, or the probes crash.
pub async fn reports(
    subject: &Subject,
    position: Position,
    only: &[&str],
    env: BTreeMap<String, String>,
) -> Result<Vec<Report>> {
    let mut words = only.to_vec();
    words.extend(position.word());
    let ran = if position.is_kernel() || position == Position::ProgramOfKernel {
        in_kernel(subject, &words, &env).await?
    } else {
        let argv: Vec<Argument> = probe_argv("probe_batch.py", &words);
        subject.start(argv, env, 120_000).await?.to_end().await?
    };
    ensure!(
        ran.outcome.is_success(),
        "the probes {}: {}{}",
        ran.outcome,
        ran.raised.unwrap_or_default(),
        String::from_utf8_lossy(&ran.stderr)
    );
    Ok(Report::all_in(&ran.stdout))
}

async fn in_kernel(
    subject: &Subject,
    words: &[&str],
    env: &BTreeMap<String, String>,
) -> Result<Ran> {
    // JSON lists and objects of plain words are Python as well.
    let (words, env) = (serde_json::to_string(words)?, serde_json::to_string(env)?);
    let code = format!(
        "import os, sys\n\
         sys.path.insert(0, '{PROBE_FOLDER}')\n\
         os.environ.update({env})\n\
         import probe_batch\n\
         probe_batch.main({words})\n"
    );
    subject.kernel(&code).await
}

/// Uses a sandbox before the probes look: other executions, a failed one, crashes and leftovers.
async fn misuse(subject: &Subject) -> Result<()> {
    for arguments in [&["crash", "segv"][..], &["daemon"], &["zombies", "40"]] {
        subject.probe("hostile.py", arguments).await?;
    }
    subject.kernel("1 + 1").await?;
    subject.client.shut_down_kernel().await?;
    Ok(())
}

/// Uses a kernel before the probes look: the first one crashes; in the next a cell fails, a thread
/// and a program go on, and a forked copy of it waits.
async fn misuse_kernel(subject: &Subject) -> Result<()> {
    let crashed = subject.kernel("import os; os._exit(3)").await?;
    ensure!(!crashed.outcome.is_success(), "a kernel does not crash");
    subject.kernel("1 / 0").await?;
    let left = "import os, subprocess, threading, time\n\
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n\
        program = subprocess.Popen(['sleep', '600'])\n\
        if os.fork() == 0: time.sleep(600)\n";
    let ran = subject.kernel(left).await?;
    ensure!(ran.outcome.is_success(), "the kernel: {:?}", ran.raised);
    Ok(())
}

/// What is known of this sandbox.
pub(crate) fn facts(lab: &Lab, subject: &Subject, position: Position) -> Result<Facts> {
    let mut facts = Facts::of_host(subject.limits.clone())?;
    facts.two_ids = lab
        .runtime
        .describe()
        .capabilities
        .has(Capability::SeparateIds);
    facts.landlock_abi = lab.landlock_abi();
    facts.in_kernel = position.is_kernel();
    Ok(facts)
}
