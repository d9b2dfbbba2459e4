//! A Docker runtime of this build under attack, and in what its sandboxes are known to differ.

use std::sync::Arc;

use anyhow::Result;
use glovebox_runtime_engine::EngineRuntime;
use glovebox_testkit::escape::containers::{differences, probe_of};
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
