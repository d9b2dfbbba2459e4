//! What the host sees: sealed processes, an agent that was killed, and nothing left.

use std::os::unix::fs::MetadataExt as _;

use anyhow::{Context as _, Result};
use glovebox_runtime::Capability;
use glovebox_testkit::escape::attacks::host::{self, Agent};
use glovebox_testkit::escape::attacks::limits;
use glovebox_testkit::escape::{Lab, Red, report};
use glovebox_testkit::{HostSnapshot, count, test_data};
use rustix::process::{Pid, Signal, kill_process};

use crate::impostor;
use crate::lab::{self, Embedded, holds, holds_with};

#[tokio::test]
async fn every_process_of_a_sandbox_is_sealed() -> Result<()> {
    holds(async |lab| host::every_process_is_sealed(lab).await).await
}

#[tokio::test]
async fn an_agent_that_was_taken_over_is_sealed_too() -> Result<()> {
    let _forgotten = lab::forgotten_descriptor()?;
    let embedded = Embedded::start().await?;
    let accepted = embedded.accepted();
    embedded.finish().await?;
    let run = lab::run_folder()?;
    let mut options = lab::options(&run)?;
    options.accept_weaker = accepted;
    report::none(&impostor::findings(options, run).await?)
}

#[tokio::test]
async fn what_an_agent_asks_of_the_launcher_is_bounded() -> Result<()> {
    let embedded = Embedded::start().await?;
    let accepted = embedded.accepted();
    embedded.finish().await?;
    let run = lab::run_folder()?;
    let mut options = lab::options(&run)?;
    options.accept_weaker = accepted;
    report::none(&impostor::asks_too_much(options, run).await?)
}

#[tokio::test]
async fn the_host_has_the_limits_written_down() -> Result<()> {
    holds_with(Capability::MemoryLimit, async |lab| {
        limits::control_groups(lab).await
    })
    .await
}

#[tokio::test]
async fn an_agent_has_open_what_it_needs_alone() -> Result<()> {
    let _forgotten = lab::forgotten_descriptor()?;
    holds(async |lab| limits::agent_descriptors(lab).await).await
}

#[tokio::test]
async fn two_sandboxes_have_no_id_in_common() -> Result<()> {
    holds(async |lab| limits::ids_differ(lab).await).await
}

#[tokio::test]
async fn a_killed_agent_is_noticed_and_never_reached_again() -> Result<()> {
    // No other signal ends the first process of a namespace.
    let kill = |pid| {
        let pid = Pid::from_raw(pid).context("no process")?;
        Ok(kill_process(pid, Signal::KILL)?)
    };
    holds(async |lab| host::agent_is_killed(lab, kill).await).await
}

/// R21, F11, F12 and F15. The name puts it alone on the machine.
#[tokio::test]
async fn many_sandboxes_one_after_another_leaves_the_host_as_it_was() -> Result<()> {
    let data = test_data()?;
    // What is made once for all sandboxes is made before the first look.
    let embedded = Embedded::start().await?;
    cycle(&embedded.lab).await?;
    let run = embedded.run_folder();
    let before = HostSnapshot::take(&[&data, &run])?;
    for _ in 0..count(60, 1000) {
        cycle(&embedded.lab).await?;
    }
    // What is left stays left; what others begin and end on this machine meanwhile does not.
    let mut left = before.changes_until(&HostSnapshot::take(&[&data, &run])?);
    for _ in 0..3 {
        cycle(&embedded.lab).await?;
        let now = before.changes_until(&HostSnapshot::take(&[&data, &run])?);
        left.retain(|change| now.contains(change));
    }
    embedded.finish().await?;
    let reds: Vec<_> = left
        .into_iter()
        // A process or a group that has gone was another's. A file that has gone is a fault.
        .filter(|change| change.starts_with('+') || change.contains(" file "))
        .map(|change| Red::new("R21", change))
        .collect();
    report::none(&reds)
}

/// One life of a sandbox, with something in it.
async fn cycle(lab: &Lab) -> Result<()> {
    let subject = lab.bare_subject(Lab::small_limits()).await?;
    let argv = [
        "/bin/sh",
        "-c",
        "echo x > file; mkfifo fifo; sleep 60 & echo y > /tmp/other",
    ];
    let argv = argv.map(Into::into).to_vec();
    let running = subject.start(argv, Default::default(), 60_000).await?;
    running.to_end().await?;
    subject.remove().await
}

#[tokio::test]
async fn no_file_of_the_host_belongs_to_a_sandboxs_id() -> Result<()> {
    let embedded = Embedded::start().await?;
    let subject = embedded.lab.subject(Lab::small_limits()).await?;
    let ids = Agent::of(&subject).await?.host_ids()?;
    subject.probe("hostile.py", &["deep-tree", "10"]).await?;
    subject.remove().await?;
    let mut reds = Vec::new();
    let own = fs_err::metadata("/proc/self")?.uid();
    if ids == [own] {
        // With one id for all, whatever a sandbox is belongs to whoever launched it; that is what
        // the runtime does not claim then.
        let claimed = embedded.lab.runtime.describe().capabilities;
        let claims = claimed.has(Capability::SeparateIds);
        embedded.finish().await?;
        anyhow::ensure!(!claims, "separate ids are claimed, and there is only {own}");
        return Ok(());
    }
    let mut left = vec![
        test_data()?,
        "/tmp".into(),
        "/dev/shm".into(),
        "/run".into(),
    ];
    while let Some(path) = left.pop() {
        // What others make and remove meanwhile is none of our business.
        let Ok(facts) = fs_err::symlink_metadata(&path) else {
            continue;
        };
        if ids.contains(&facts.uid()) || ids.contains(&facts.gid()) {
            reds.push(Red::new(
                "F12",
                format!("{} is a sandbox's", path.display()),
            ));
        }
        if facts.is_dir() {
            left.extend(
                fs_err::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .filter_map(|entry| Some(entry.ok()?.path())),
            );
        }
    }
    embedded.finish().await?;
    report::none(&reds)
}
