//! What this machine can isolate, for `glovebox doctor`.
//!
//! Nothing is concluded that can be tried: the launcher makes a throwaway process in namespaces
//! of its own and mounts, limits and restricts there what a box would. It is the launcher that
//! tries, because it has one thread, and because what a machine allows may depend on the program
//! that asks (AppArmor).

mod checks;
mod host;
pub(crate) mod trial;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::weakness::Weakness;

pub use host::Host;
pub use trial::{GroupTrial, Trial, Trials, What};

/// How one thing stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// As it should be.
    Pass,
    /// Sandboxes work, and something could be better.
    Warn,
    /// Sandboxes are refused, unless the missing protection is accepted by name.
    Fail,
}

/// What was looked at, how it stands, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name.
    pub id: String,
    /// How it stands.
    pub status: Status,
    /// What was found, in one sentence.
    pub message: String,
    /// The exact command or change that helps, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The name under which going without it can be accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weakness: Option<Weakness>,
}

/// The machine could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The launcher could not be run.
    #[error("running {} --try", launcher.display())]
    Run {
        /// Which launcher.
        launcher: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The launcher failed, or said something that is no answer.
    #[error("{} --try said: {said}", launcher.display())]
    Answer {
        /// Which launcher.
        launcher: PathBuf,
        /// Its words.
        said: String,
    },
}

/// Looks at everything. `data` is the data folder, if there is one yet; `root_range_start` is the
/// first host id of the pod when root asks.
///
/// # Errors
/// When the launcher cannot be run. What the machine lacks is no error.
pub fn run(
    launcher: &Path,
    data: Option<&Path>,
    root_range_start: u32,
) -> Result<Vec<Check>, ProbeError> {
    let trials = try_out(launcher, data, root_range_start)?;
    Ok(checks::all(&trials, &Host::this()))
}

/// Lets the launcher try what a box needs.
///
/// # Errors
/// When it cannot be run.
pub fn try_out(
    launcher: &Path,
    data: Option<&Path>,
    root_range_start: u32,
) -> Result<Trials, ProbeError> {
    let mut command = Command::new(launcher);
    command
        .arg("--try")
        .arg(root_range_start.to_string())
        .args(data)
        .env_clear()
        .stdin(Stdio::null());
    let output = command.output().map_err(|source| ProbeError::Run {
        launcher: launcher.to_owned(),
        source,
    })?;
    serde_json::from_slice(&output.stdout).map_err(|_| ProbeError::Answer {
        launcher: launcher.to_owned(),
        said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
