//! The batch of harmless probes, from every place where code runs.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use glovebox_testkit::escape::Lab;
use glovebox_testkit::escape::batch::{self, Position};
use glovebox_testkit::escape::containers::{differences, probe_of};
use glovebox_testkit::escape::lab::PYTHON;

use crate::lab::{found, holds};

async fn hold(position: Position) -> Result<()> {
    holds(async |lab| batch::run(lab, position).await).await
}

#[tokio::test]
async fn the_probes_hold_in_the_first_program_of_a_sandbox() -> Result<()> {
    hold(Position::First).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_sandbox() -> Result<()> {
    hold(Position::Used).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_that_left_its_session() -> Result<()> {
    hold(Position::Detached).await
}

#[tokio::test]
async fn the_probes_hold_in_the_kernel() -> Result<()> {
    hold(Position::Kernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_kernel() -> Result<()> {
    hold(Position::UsedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_of_the_kernel() -> Result<()> {
    hold(Position::DetachedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_program_of_the_kernel() -> Result<()> {
    hold(Position::ProgramOfKernel).await
}

#[tokio::test]
async fn the_image_holds_no_privilege_and_no_secret() -> Result<()> {
    holds(async |lab| batch::run_walks(lab).await).await
}

/// Each line of the table of differences is true; one that is not protects nothing and hides what
/// may come.
#[tokio::test]
async fn what_is_said_to_be_different_is() -> Result<()> {
    let mut found = found(async |lab| batch::run(lab, Position::First).await).await?;
    found.extend(self::found(async |lab| batch::run_walks(lab).await).await?);
    let seen: BTreeSet<_> = found
        .iter()
        .filter_map(probe_of)
        .map(str::to_owned)
        .collect();
    let stale: Vec<_> = differences()?.difference(&seen).cloned().collect();
    anyhow::ensure!(stale.is_empty(), "not different any more: {stale:?}");
    Ok(())
}

/// What is covered is there and empty, and nothing of the engine's own file systems is written.
#[tokio::test]
async fn what_tells_of_the_host_is_covered() -> Result<()> {
    let look = "import os\n\
        files = ['cmdline', 'config.gz', 'interrupts', 'iomem', 'kallsyms', 'keys', 'modules', \
        'slabinfo', 'sys/kernel/random/boot_id', 'timer_list', 'version']\n\
        for name in files + ['../etc/resolv.conf']:\n\
        \x20   name = '/proc/' + name\n\
        \x20   if os.path.exists(name) and open(name, 'rb').read(): print(name, 'tells something')\n\
        for name in ['block', 'bus', 'class', 'devices', 'kernel', 'module']:\n\
        \x20   name = '/sys/' + name\n\
        \x20   if os.path.exists(name) and os.listdir(name): print(name, 'is not empty')\n\
        for name in ['/proc/sys/vm/drop_caches', '/sys/fs/cgroup/memory/memory.limit_in_bytes', \
        '/sys/fs/cgroup/memory.max', '/dev/mqueue/a', '/dev/a', '/etc/a', '/proc/1/oom_score_adj']:\n\
        \x20   try: open(name, 'w'); print(name, 'can be written')\n\
        \x20   except OSError: pass\n\
        open('/workspace/a', 'w').write('control')\n\
        print('looked')";
    let said = Arc::new(Mutex::new(String::new()));
    let heard = Arc::clone(&said);
    found(async move |lab| {
        let subject = lab.bare_subject(Lab::small_limits()).await?;
        let argv = [PYTHON, "-c", look].map(Into::into).to_vec();
        let ran = subject
            .start(argv, Default::default(), 60_000)
            .await?
            .to_end()
            .await?;
        let said = [ran.stdout, ran.stderr].concat();
        heard.lock().unwrap().push_str(&String::from_utf8(said)?);
        subject.remove().await?;
        Ok(Vec::new())
    })
    .await?;
    assert_eq!(said.lock().unwrap().as_str(), "looked\n");
    Ok(())
}
