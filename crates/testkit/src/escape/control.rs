//! Runs the controls: the probes that change nothing, outside of a sandbox.

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

use super::PROBES;
use super::expect::{self, Facts};
use super::expectations;
use super::lab::Lab;
use super::report::{Red, Report};

/// Shows that what the batch finds refused is possible without a sandbox.
///
/// The probes run in a thin box of their own (`probe_control.py`), so that nothing they manage to
/// do reaches this machine.
///
/// # Errors
/// When they cannot be run.
pub async fn run() -> Result<Vec<Red>> {
    let folder = tempfile::tempdir()?;
    for (name, text) in PROBES {
        fs_err::write(folder.path().join(name), text)?;
    }
    let output = Command::new("python3")
        .arg("-B")
        .arg(folder.path().join("probe_control.py"))
        .output()
        .await
        .context("running the controls with python3")?;
    ensure!(
        output.status.success(),
        "the controls ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    let reports = Report::all_in(&output.stdout);
    let facts = Facts::of_host(Lab::small_limits())?;
    Ok(expect::judge_controls(
        &expectations::of_checks(&[]),
        &reports,
        &facts,
    ))
}
