//! The sandbox of a thread: the one that is there, or a new one in its place.

use std::time::Instant;

use glovebox_client::ClientError;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::gateway::SandboxState;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{Access, EndedWhy, Lease, LeaseState};
use serde_json::json;

use super::failure;
use super::turn::{Turn, TurnError};
use crate::app::drive::{GATEWAY_PATIENCE, ended_because, is_away};
use crate::app::gate::{Denial, Grant};
use crate::app::sandboxes::{SandboxError, is_unknown};

/// How long it is waited before a gateway is asked again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// A sandbox that takes code.
pub(super) struct Ready {
    pub(super) lease: Lease,
    pub(super) grant: Grant,
    /// Why the last one is gone, where this one is new in its place.
    pub(super) replaces: Option<String>,
    /// Whether it was made just now.
    pub(super) is_new: bool,
}

/// The sandbox for the next step. Nothing the caller says decides what it is like.
pub(super) async fn ready(
    turn: &Turn,
    access: &Access,
    step: Option<u32>,
) -> Result<Ready, TurnError> {
    tokio::select! {
        ready = find_or_make(turn, access, step) => ready,
        () = turn.stopped() => Err(TurnError::Stopped),
    }
}

async fn find_or_make(turn: &Turn, access: &Access, step: Option<u32>) -> Result<Ready, TurnError> {
    if let Some(lease) = present(turn).await? {
        match turn.app.use_lease(access, lease).await {
            Ok((lease, grant)) => {
                turn.app.store().touch_lease(lease.id).await?;
                return Ok(Ready {
                    lease,
                    grant,
                    replaces: None,
                    is_new: false,
                });
            }
            // It ended since it was looked at.
            Err(SandboxError::Gone { .. }) => {}
            Err(error) => return Err(refused(turn, access, error).await),
        }
    }
    make(turn, access, step).await
}

/// The sandbox that the thread has, if it is there in truth and not on paper only.
async fn present(turn: &Turn) -> Result<Option<Lease>, TurnError> {
    let app = &turn.app;
    let Some(lease) = app.store().lease_of_thread(turn.thread.id).await? else {
        return Ok(None);
    };
    if lease.state == LeaseState::Starting {
        // One reply runs at a time: whoever was making it is gone.
        let detail = "the server that was making it was ended";
        app.remove_sandbox(lease.id, EndedWhy::StartFailed, detail)
            .await
            .map_err(failure::of_sandbox)?;
        return Ok(None);
    }
    let end = match look(turn, lease.id).await {
        Ok(SandboxState::Ended { reason, .. }) => ended_because(&lease, reason),
        Ok(_) => return Ok(Some(lease)),
        Err(error) if is_unknown(&error) => (
            EndedWhy::GatewayLost,
            "its gateway does not know it any more".into(),
        ),
        Err(error) => return Err(TurnError::Refused(failure::of_client(&error))),
    };
    app.store().end_lease(lease.id, end.0, &end.1).await?;
    Ok(None)
}

/// What the gateway says of a sandbox. One that is being started again is waited for.
async fn look(turn: &Turn, id: SandboxId) -> Result<SandboxState, ClientError> {
    let deadline = Instant::now() + GATEWAY_PATIENCE;
    loop {
        match turn.app.gateway().sandbox(id).await {
            Err(error) if is_away(&error) && Instant::now() < deadline => {
                tokio::time::sleep_until((Instant::now() + PAUSE).into()).await;
            }
            Err(error) => return Err(error),
            Ok(view) => return Ok(view.state),
        }
    }
}

async fn make(turn: &Turn, access: &Access, step: Option<u32>) -> Result<Ready, TurnError> {
    let store = turn.app.store();
    let before = store.leases_of_thread(turn.thread.id).await?;
    let replaces = before
        .into_iter()
        .find(|lease| lease.ended_why != Some(EndedWhy::StartFailed))
        .map(|lease| lease.ended_detail.unwrap_or_default());
    let (id, begun) = (SandboxId::new(), Instant::now());
    tell(
        turn,
        step,
        EventBody::SandboxStarting {
            sandbox: id,
            accepted_weaker: Vec::new(),
        },
    )
    .await?;
    // A task of its own: where the reply is stopped meanwhile, the sandbox is finished all the same
    // and waits for the next one.
    let (app, rights, thread) = (turn.app.clone(), access.clone(), turn.thread.id);
    let making =
        tokio::spawn(async move { app.make_sandbox(&rights, None, id, Some(thread)).await });
    let made = match making.await {
        Ok(Ok(lease)) => lease,
        Ok(Err(error)) => return Err(refused(turn, access, error).await),
        Err(_) => {
            let fix = "try again; an administrator finds the reason in the server's log";
            return Err(failure::refused(
                "internal",
                "the server could not make a sandbox",
                fix,
            ));
        }
    };
    let after_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let ready = EventBody::SandboxReady {
        sandbox: id,
        after_ms,
    };
    tell(turn, step, ready).await?;
    // The profile and the quotas as they are now.
    let used = turn.app.use_lease(access, made).await;
    let (lease, grant) = match used {
        Ok(used) => used,
        Err(error) => return Err(refused(turn, access, error).await),
    };
    Ok(Ready {
        lease,
        grant,
        replaces,
        is_new: true,
    })
}

/// Tells what happens to the sandbox, where a step is there that it belongs to.
async fn tell(turn: &Turn, step: Option<u32>, event: EventBody) -> Result<(), TurnError> {
    if let Some(step) = step {
        let reply = turn.reply();
        turn.tell(ThreadEventBody::StepEvent { reply, step, event })
            .await?;
    }
    Ok(())
}

/// Why there is none. Where a quota is in the way that one's own idle sandboxes fill, they are
/// offered to be ended.
async fn refused(turn: &Turn, access: &Access, error: SandboxError) -> TurnError {
    match error {
        SandboxError::Denied(denial) if denial.name == "quota:max_concurrent" => {
            match with_offer(turn, access, denial).await {
                Ok(denial) => TurnError::Refused(failure::of_denial(denial)),
                Err(error) => error,
            }
        }
        error => failure::of_sandbox(error),
    }
}

async fn with_offer(turn: &Turn, access: &Access, mut denial: Denial) -> Result<Denial, TurnError> {
    let store = turn.app.store();
    let mut idle = Vec::new();
    for lease in store.leases_of(access, None, MOST_OFFERED).await? {
        let is_live = lease.state == LeaseState::Ready;
        if !is_live || !store.running_executions(Some(lease.id)).await?.is_empty() {
            continue;
        }
        let thread = match lease.thread_id {
            Some(thread) => store.thread_of(access, thread).await?,
            None => None,
        };
        idle.push(json!({
            "sandbox_id": lease.id, "active_at": lease.active_at,
            "thread_id": lease.thread_id, "thread_title": thread.map(|thread| thread.title),
        }));
    }
    denial.details["idle"] = json!(idle);
    Ok(denial)
}

/// How many of one's sandboxes are looked at for one that could be ended.
const MOST_OFFERED: u32 = 50;
