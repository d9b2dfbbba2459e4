//! Preflight: what the gateway finds when it looks at itself, its runtime and its host.

mod checks;

use std::time::Duration;

use glovebox_protocol::gateway::{Check, CheckStatus, Preflight};
use glovebox_runtime::{Examined, RuntimeError};
use tokio::time::timeout;

use crate::auth::Caller;
use crate::error::chain;
use crate::state::Shared;

/// How long the runtime may take to answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The ids of the checks that are the gateway's own, in order. Those of runtimes stand beside
/// their drivers; the deployment guide lists all.
pub const CHECKS: [&str; 12] = [
    "runtime.reachable",
    "runtime.limits",
    "storage.workspace_limit",
    "image.allowed",
    "image.present",
    "image.protocol",
    "auth.clock_skew",
    "auth.secrets",
    "state.folder",
    "state.socket",
    "network.listen",
    "network.host_firewall",
];

/// Looks at everything.
pub(crate) async fn run(shared: &Shared, caller: Caller) -> Preflight {
    let reached = reach(shared).await;
    let mut checks = vec![reachable(&reached)];
    let examined = reached.unwrap_or_default();
    checks.extend(checks::of_runtime(shared, &examined));
    checks.extend(checks::of_gateway(shared, caller));
    checks.extend(examined.checks);
    Preflight { checks }
}

async fn reach(shared: &Shared) -> Result<Examined, String> {
    let images: Vec<String> = shared.rules.images.iter().map(Into::into).collect();
    let asked = async {
        shared.runtime.list().await?;
        shared.runtime.examine(&images).await
    };
    match timeout(PATIENCE, asked).await {
        Ok(Ok(examined)) => Ok(examined),
        Ok(Err(error)) => Err(in_words(&error)),
        Err(_) => Err(format!("it gave no answer within {} s", PATIENCE.as_secs())),
    }
}

fn in_words(error: &RuntimeError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => chain(&error.to_string(), cause),
        None => error.to_string(),
    }
}

fn reachable(reached: &Result<Examined, String>) -> Check {
    let id = "runtime.reachable";
    match reached {
        Ok(_) => check(id, CheckStatus::Pass, "the runtime answers"),
        Err(why) => with_fix(
            check(
                id,
                CheckStatus::Fail,
                format!("the runtime cannot be used: {why}"),
            ),
            "start it, and give the gateway the right to use it",
        ),
    }
}

fn check(id: &str, status: CheckStatus, message: impl Into<String>) -> Check {
    Check {
        id: id.into(),
        status,
        message: message.into(),
        fix: None,
    }
}

fn with_fix(mut check: Check, fix: impl Into<String>) -> Check {
    check.fix = Some(fix.into());
    check
}
