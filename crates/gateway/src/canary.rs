//! The canary's own end: places that a sandbox must not reach, opened for a while, and a list of
//! those that are there anyway.
//!
//! The gateway opens something to be reached wherever it can, and makes sure that it can reach it
//! itself: what a sandbox then does not get through to, it is kept from. It sends nothing beyond
//! its host.

mod look;
mod open;
mod targets;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::gateway::CanaryPlan;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::state::Shared;

/// How long the gateway's own targets stay open.
const OPEN_FOR: Duration = Duration::from_secs(60);

/// How long an attempt may take, in milliseconds.
const ATTEMPT_LIMIT_MS: u64 = 2_000;

/// Plans that may be open at once.
const MAX_PLANS: usize = 4;

/// How many plans may still be opened.
#[derive(Debug, Clone)]
pub(crate) struct Plans(Arc<Semaphore>);

impl Default for Plans {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_PLANS)))
    }
}

/// Opens the gateway's targets and lists all. `peer` is where the request came from.
pub(crate) async fn plan(
    shared: &Shared,
    peer: Option<SocketAddr>,
) -> Result<CanaryPlan, ApiError> {
    let Ok(place) = Arc::clone(&shared.plans.0).try_acquire_owned() else {
        let details = serde_json::json!({ "budget": "canaries", "limit": MAX_PLANS });
        return Err(ApiError::exhausted(
            format!("{MAX_PLANS} canaries are open already; each closes after a minute"),
            details,
        ));
    };
    let opened = open::open().await.map_err(|error| {
        ApiError::internal("opening a place that a sandbox must not reach", &error)
    })?;
    let targets = targets::all(shared, peer, &opened).await;
    let until_ms = shared.now_ms() + i64::try_from(OPEN_FOR.as_millis()).unwrap_or(0);
    tokio::spawn(async move {
        opened.serve(OPEN_FOR).await;
        drop(place);
    });
    Ok(CanaryPlan {
        targets,
        attempt_limit_ms: ATTEMPT_LIMIT_MS,
        open_until_ms: until_ms,
    })
}
