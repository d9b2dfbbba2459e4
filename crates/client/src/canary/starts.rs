//! The canary once for every start that a gateway's sandboxes can have: a kernel that is a copy of a
//! template comes into its sandbox by another way than a program does.

use std::pin::Pin;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::capability::Capability;
use glovebox_protocol::gateway::CanaryReport;

use super::{CanaryError, open, run_in};
use crate::{AgentClient, ClientError, GatewayClient};

/// A sandbox on its way. Named, and not left to an asynchronous closure, so that whoever proves a
/// gateway can do it on any thread.
pub(super) type Making<'a> =
    Pin<Box<dyn Future<Output = Result<AgentClient, ClientError>> + Send + 'a>>;

/// Lets a sandbox of each start try everything of the gateway's plan, while another one opens the
/// target that is between two sandboxes. `make` makes a throwaway sandbox of a start, and whoever
/// calls this ends all that it made.
///
/// # Errors
/// When there is no result for every target of every start. That is no pass.
pub(super) async fn run_starts<'a>(
    gateway: &GatewayClient,
    make: &(dyn Fn(Start) -> Making<'a> + Sync),
) -> Result<CanaryReport, CanaryError> {
    let can_copy = gateway.info().await?.capabilities;
    let can_copy = can_copy.has(Capability::TemplateStart);
    let starts = [Start::Fresh, Start::Template];
    let starts = starts
        .into_iter()
        .filter(|start| *start == Start::Fresh || can_copy);
    let other = make(Start::Fresh).await?;
    let mut subjects = Vec::new();
    for start in starts {
        subjects.push((start, make(start).await?));
    }
    // Only now, as the gateway's targets are open for a while from here on.
    let plan = gateway.canary_plan().await?;
    let opened = open(&plan, &other).await?;
    let mut results = Vec::new();
    for (start, subject) in &subjects {
        let report = run_in(&plan, subject, *start).await?;
        results.extend(report.results);
    }
    drop(opened);
    Ok(CanaryReport { results })
}
