//! Sandboxes and leases brought together, and what nobody drives any more ended.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::gateway::{SandboxState, SandboxView};
use glovebox_protocol::ids::SandboxId;
use glovebox_store::{EndedWhy, Lease, LeasePurpose, LeaseState};

use crate::app::App;
use crate::app::drive::ended_because;
use crate::app::hard_limit;
use crate::app::sandboxes::{SandboxError, is_unknown};
use crate::failure::chain;
use crate::worker::TAKEN;

/// For how long a sandbox without lease, or a lease without sandbox, may be one that is just
/// being made, in seconds.
const GRACE_SECONDS: i64 = 120;

/// After how long a sandbox of a preview is nobody's that no worker holds on to, in seconds: whoever
/// makes a preview says so three times in the time of a task.
const UNHELD_SECONDS: i64 = 2 * TAKEN.as_secs().cast_signed();

/// Looks everything through once.
///
/// # Errors
/// When the store fails or the gateway does not answer; what was not looked at then is next time.
pub(super) async fn sweep(app: &App) -> Result<(), SandboxError> {
    end_undriven(app).await?;
    let mut there = sandboxes(app).await?;
    for lease in app.store().live_leases().await? {
        let view = there.remove(&lease.id);
        if let Err(error) = look_at(app, &lease, view).await {
            tracing::warn!(sandbox = %lease.id, error = chain(&error), "looking at a lease");
        }
    }
    // What is left has no live lease.
    for (id, view) in there {
        if matches!(view.state, SandboxState::Ended { .. }) {
            continue;
        }
        let lease = app.store().lease(id).await?;
        if lease.is_some() {
            tracing::info!(sandbox = %id, "ending a sandbox whose lease has ended");
            remove(app, id).await;
        }
        // One that was never leased here may be a canary's: those end by their own deadline.
    }
    Ok(())
}

async fn remove(app: &App, id: SandboxId) {
    match app.gateway().delete(id).await {
        Ok(_) => {}
        Err(error) if is_unknown(&error) => {}
        Err(error) => tracing::warn!(sandbox = %id, error = chain(&error), "ending a sandbox"),
    }
}

/// All sandboxes of the gateway.
async fn sandboxes(app: &App) -> Result<BTreeMap<SandboxId, SandboxView>, SandboxError> {
    let mut found = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let page = app.gateway().sandboxes(after.as_deref()).await?;
        found.extend(page.items.into_iter().map(|view| (view.id, view)));
        after = page.next_cursor;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// Brings one lease together with what the gateway says of its sandbox.
async fn look_at(app: &App, lease: &Lease, view: Option<SandboxView>) -> Result<(), SandboxError> {
    let now = Utc::now();
    match view.map(|view| view.state) {
        _ if is_left(lease, now) => {
            let detail = "the worker that used it was ended";
            app.remove_sandbox(lease.id, EndedWhy::Asked, detail)
                .await?;
        }
        Some(SandboxState::Ended { reason, .. }) => {
            let (why, reason) = ended_because(lease, reason);
            app.store().end_lease(lease.id, why, &reason).await?;
        }
        _ if now >= hard_limit::last_call(lease) => end_at_hard_limit(app, lease).await?,
        None if now - lease.created_at > TimeDelta::seconds(GRACE_SECONDS)
            || lease.state != LeaseState::Starting =>
        {
            // Between the two lists it may have been made, or the gateway just started: asked
            // once more by name.
            match app.gateway().sandbox(lease.id).await {
                Ok(_) => {}
                Err(error) if is_unknown(&error) => {
                    let detail = "its gateway does not know it any more";
                    app.store()
                        .end_lease(lease.id, EndedWhy::GatewayLost, detail)
                        .await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        None => {}
        // Whoever asked for it was ended before it could note that it is there.
        Some(SandboxState::Running) if lease.state == LeaseState::Starting => {
            app.store()
                .move_lease(lease.id, LeaseState::Starting, LeaseState::Ready)
                .await?;
        }
        Some(_) => suspend_if_idle(app, lease).await?,
    }
    Ok(())
}

/// Whether a preview was made in a sandbox by a worker that is no more: whoever made it was killed.
fn is_left(lease: &Lease, now: DateTime<Utc>) -> bool {
    lease.purpose == LeasePurpose::Preview
        && now - lease.active_at > TimeDelta::seconds(UNHELD_SECONDS)
}

/// Ends a sandbox whose time is up, after what is in it was collected. Beside the sweep: other
/// sandboxes are looked after meanwhile.
async fn end_at_hard_limit(app: &App, lease: &Lease) -> Result<(), SandboxError> {
    // Whoever drives its code ends the code, tells why, collects, and ends the sandbox.
    let runs = !app
        .store()
        .running_executions(Some(lease.id))
        .await?
        .is_empty();
    if runs && !hard_limit::is_over(lease) {
        return Ok(());
    }
    let (app, lease) = (app.clone(), lease.clone());
    tokio::spawn(async move {
        if let Err(error) = app.end_at_hard_limit(&lease).await {
            // The next sweep comes by.
            tracing::warn!(sandbox = %lease.id, error = chain(&error), "ending a sandbox");
        }
    });
    Ok(())
}

/// Ends the processes of a sandbox that nobody has used for a while; its files stay.
async fn suspend_if_idle(app: &App, lease: &Lease) -> Result<(), SandboxError> {
    let is_left = lease.state == LeaseState::Suspended && !lease.is_quiet;
    let idle_since = lease.active_at + TimeDelta::milliseconds(lease.idle_limit_ms);
    let is_idle = lease.state == LeaseState::Ready && Utc::now() >= idle_since;
    // First the note: code that comes now finds a suspended lease, and counts it again.
    let is_noted = is_left || (is_idle && app.store().suspend_idle_lease(lease.id).await?);
    if !is_noted {
        return Ok(());
    }
    // A worker that was killed after the note left the processes to the next sweep, which comes to
    // here: what was noted does not run on.
    match app.agent(lease.id).end_unused_workload().await {
        Ok(_) => app.store().note_quiet(lease.id).await?,
        // Somebody uses it again since the note was made.
        Err(error) if error.code() == Some(ErrorCode::Conflict) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    tracing::info!(sandbox = %lease.id, "a sandbox was suspended");
    Ok(())
}

/// Ends executions whose server is gone: their stream was cut, so that the agent has interrupted
/// what ran.
async fn end_undriven(app: &App) -> Result<(), SandboxError> {
    for execution in app.store().undriven_executions().await? {
        let failed = EventBody::Failed(
            ErrorBody::new(
                ErrorCode::Internal,
                "the server that ran this was ended in the middle of it; the code was interrupted",
            )
            .with_fix("run it again; variables and files may still be there"),
        );
        if app.store().end_execution(execution.id, &[failed]).await? {
            app.metrics().abandoned();
            tracing::warn!(execution = %execution.id, "an execution that nobody drove was ended");
        }
    }
    Ok(())
}
