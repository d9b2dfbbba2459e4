//! What this machine can isolate, as `glovebox doctor` finds it.

use std::path::PathBuf;

use glovebox_box::probe::{self, Status};
use glovebox_box::weakness::Weakness;
use glovebox_protocol::gateway::{Check, CheckStatus};
use glovebox_runtime::{Examined, RuntimeError};

/// The ids of all checks, in order.
pub const CHECKS: [&str; 16] = [
    "host.kernel",
    "host.user-namespaces",
    "host.subordinate-ids",
    "host.tmpfs",
    "host.overlay",
    "host.proc",
    "host.seccomp",
    "host.cgroup-memory",
    "host.cgroup-swap",
    "host.cgroup-pids",
    "host.cgroup-cpu",
    "host.landlock",
    "host.core-pattern",
    "host.vsock",
    "host.ksm",
    "host.smt",
];

/// What the launcher tries things out with.
#[derive(Debug, Clone)]
pub(super) struct Host {
    pub(super) launcher: PathBuf,
    pub(super) data: PathBuf,
    pub(super) root_range_start: u32,
}

impl Host {
    /// Tries everything in a process of its own. What was accepted by name is told as a warning.
    pub(super) async fn examine(&self, accepted: &[Weakness]) -> Result<Examined, RuntimeError> {
        let host = self.clone();
        let tried = tokio::task::spawn_blocking(move || {
            probe::run(&host.launcher, Some(&host.data), host.root_range_start)
        });
        let failed = |cause: glovebox_runtime::Cause| RuntimeError::Unavailable {
            doing: "looking at this machine".into(),
            fix: None,
            cause,
        };
        let checks = tried.await.map_err(|error| failed(error.into()))?;
        let checks = checks.map_err(|error| failed(error.into()))?;
        Ok(Examined {
            checks: checks
                .into_iter()
                .map(|check| from_probe(check, accepted))
                .collect(),
            images: Vec::new(),
        })
    }
}

fn from_probe(check: probe::Check, accepted: &[Weakness]) -> Check {
    let is_accepted = check.weakness.is_some_and(|one| accepted.contains(&one));
    Check {
        id: format!("host.{}", check.id),
        status: match check.status {
            Status::Pass => CheckStatus::Pass,
            Status::Fail if !is_accepted => CheckStatus::Fail,
            Status::Fail | Status::Warn => CheckStatus::Warn,
        },
        message: check.message,
        fix: check.fix,
    }
}
