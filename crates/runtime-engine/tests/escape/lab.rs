//! A Docker runtime of this build under attack, and in what its sandboxes are known to differ.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use glovebox_runtime_engine::EngineRuntime;
use glovebox_testkit::escape::{Lab, Red, report};

use crate::support;

/// Runs a check on a runtime of its own and gives what it found.
pub(crate) async fn found(check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>) -> Result<Vec<Red>> {
    let options = support::options();
    let installation = options.installation;
    let _cleaner = support::Cleaner(installation);
    let runtime = Arc::new(EngineRuntime::start(options).await?);
    let abi = glovebox_box::landlock_abi();
    check(&Lab::new(runtime, installation)?.with_landlock(abi)).await
}

/// Runs a check and fails with what it found beyond what is known to be different.
pub(crate) async fn holds(check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>) -> Result<()> {
    let known = differences()?;
    let mut reds = found(check).await?;
    reds.retain(|red| !probe_of(red).is_some_and(|probe| known.contains(probe)));
    report::none(&reds)
}

/// The probe that a finding is of.
pub(crate) fn probe_of(red: &Red) -> Option<&str> {
    red.why.split('`').nth(1)
}

/// The probes that stand in the document's table.
pub(crate) fn differences() -> Result<BTreeSet<String>> {
    let document = glovebox_testkit::repository().join("docs/security/containers.md");
    let text = fs_err::read_to_string(document)?;
    let (_, table) = text
        .split_once("## What is different")
        .context("the document has no such table")?;
    let probe = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    Ok(table.lines().filter_map(probe).collect())
}
