//! A Docker runtime of this build under attack.

use std::sync::Arc;

use anyhow::Result;
use glovebox_runtime_engine::EngineRuntime;
use glovebox_testkit::escape::{Lab, Red, report};

use crate::support;

/// Runs a check on a runtime of its own and fails with what it found.
pub(crate) async fn holds(check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>) -> Result<()> {
    let options = support::options();
    let installation = options.installation;
    let _cleaner = support::Cleaner(installation);
    let runtime = Arc::new(EngineRuntime::start(options).await?);
    let abi = glovebox_box::landlock_abi();
    let lab = Lab::new(runtime, installation)?.with_landlock(abi);
    report::none(&check(&lab).await?)
}
