//! A sandbox that was kept ready before anybody asked for it.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use glovebox_runtime::Start;
use glovebox_runtime_embedded::{EmbeddedRuntime, Pool, ReadyKind};
use glovebox_testkit::escape::batch::{self, Position};
use glovebox_testkit::escape::{Lab, report};

use crate::stage::Kind;

/// How long sandboxes may take to become ready.
const PATIENCE: Duration = Duration::from_secs(90);

/// How many are kept.
const READY: u32 = 3;

async fn pool(runtime: &EmbeddedRuntime, kind: &ReadyKind) -> Result<Option<Pool>> {
    let measured = runtime.measure().await?;
    Ok(measured.pool(kind).cloned())
}

/// Has sandboxes of this lab's kind kept, and waits until all are ready.
async fn keep(runtime: &EmbeddedRuntime, kind: &ReadyKind) -> Result<()> {
    runtime.keep_ready(kind.clone(), READY).await?;
    let ready = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let pool = pool(runtime, kind).await?;
            if pool.is_some_and(|pool| pool.ready == READY) {
                return anyhow::Ok(());
            }
        }
    };
    tokio::time::timeout(PATIENCE, ready)
        .await
        .context("no sandboxes become ready")?
}

/// From every position, in sandboxes none of which is given away twice.
#[tokio::test]
async fn the_probes_hold_in_sandboxes_that_were_kept_ready() -> Result<()> {
    let (stage, lab) = super::lab(Kind::Embedded).await?;
    let runtime = stage.embedded.clone().context("no embedded runtime")?;
    let lab = lab.starting(Start::Template);
    let kind = ReadyKind::of(&lab.spec(Lab::small_limits()));
    keep(&runtime, &kind).await?;
    let mut reds = Vec::new();
    for position in [Position::First, Position::Kernel, Position::ProgramOfKernel] {
        let before = pool(&runtime, &kind).await?.context("no pool")?.hits;
        reds.extend(batch::run(&lab, position).await?);
        let after = pool(&runtime, &kind).await?.context("no pool")?.hits;
        ensure!(after > before, "the sandbox was not one of those kept");
        keep(&runtime, &kind).await?;
    }
    let mut epochs = BTreeSet::new();
    for _ in 0..=READY {
        let subject = lab.bare_subject(Lab::small_limits()).await?;
        let epoch = subject.client.health().await?.epoch.to_string();
        ensure!(epochs.insert(epoch), "a sandbox was given away twice");
        subject.remove().await?;
    }
    drop((lab, runtime));
    stage.finish().await;
    report::none(&reds)
}
