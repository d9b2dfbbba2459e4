//! The sandbox of a thread: the one that is there, or a new one in its place.

use std::time::Instant;

use chrono::{TimeDelta, Utc};
use glovebox_client::ClientError;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::gateway::SandboxState;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{Access, EndedWhy, Lease, LeaseState, StoreError};

use super::failure;
use super::turn::{Turn, TurnError};
use crate::app::drive::{GATEWAY_PATIENCE, ended_because, is_away};
use crate::app::gate::Grant;
use crate::app::sandboxes::{SandboxError, is_unknown};

/// How long it is waited before a gateway is asked again.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(200);

/// How long after its lease a gateway has been asked for a sandbox at the latest, in seconds, where
/// whoever is making it has not ended.
const ASKED_WITHIN_SECONDS: i64 = 10;

/// A sandbox that takes code.
pub(super) struct Ready {
    pub(super) lease: Lease,
    pub(super) grant: Grant,
    /// Why the last one is gone, where this one is new in its place.
    pub(super) replaces: Option<String>,
    /// Whether no code has run in it yet.
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
                let store = turn.app.store();
                store.touch_lease(lease.id).await?;
                // It may have been made for a reply that was stopped meanwhile.
                let is_new = !store.has_run(lease.id).await?;
                let replaces = if is_new {
                    replaced(turn, lease.id).await?
                } else {
                    None
                };
                return Ok(Ready {
                    lease,
                    grant,
                    replaces,
                    is_new,
                });
            }
            // It ended since it was looked at.
            Err(SandboxError::Gone { .. }) => {}
            Err(error) => return Err(failure::of_sandbox(error)),
        }
    }
    make(turn, access, step).await
}

/// The sandbox that the thread has, if it is there in truth and not on paper only.
async fn present(turn: &Turn) -> Result<Option<Lease>, TurnError> {
    let app = &turn.app;
    loop {
        let Some(lease) = app.store().lease_of_thread(turn.thread.id).await? else {
            return Ok(None);
        };
        let is_starting = lease.state == LeaseState::Starting;
        let may_be_asked_for =
            is_starting && Utc::now() - lease.created_at < TimeDelta::seconds(ASKED_WITHIN_SECONDS);
        let end = match look(turn, lease.id).await {
            Ok(SandboxState::Ended { reason, .. }) => ended_because(&lease, reason),
            // A reply that was stopped meanwhile has asked for it: it is made to its end.
            Ok(SandboxState::Starting) => {
                pause().await;
                continue;
            }
            Ok(_) if is_starting => {
                // Whoever makes it notes the same.
                app.store()
                    .move_lease(lease.id, LeaseState::Starting, LeaseState::Ready)
                    .await?;
                continue;
            }
            Ok(_) => return Ok(Some(lease)),
            Err(error) if is_unknown(&error) && may_be_asked_for => {
                pause().await;
                continue;
            }
            Err(error) if is_unknown(&error) && is_starting => {
                let detail = "the server that was making it was ended";
                app.remove_sandbox(lease.id, EndedWhy::StartFailed, detail)
                    .await
                    .map_err(failure::of_sandbox)?;
                return Ok(None);
            }
            Err(error) if is_unknown(&error) => (
                EndedWhy::GatewayLost,
                "its gateway does not know it any more".into(),
            ),
            Err(error) => return Err(TurnError::Refused(failure::of_client(&error))),
        };
        app.store().end_lease(lease.id, end.0, &end.1).await?;
        return Ok(None);
    }
}

async fn pause() {
    tokio::time::sleep_until((Instant::now() + PAUSE).into()).await;
}

/// What the gateway says of a sandbox. One that is being started again is waited for.
async fn look(turn: &Turn, id: SandboxId) -> Result<SandboxState, ClientError> {
    let deadline = Instant::now() + GATEWAY_PATIENCE;
    loop {
        match turn.app.gateway().sandbox(id).await {
            Err(error) if is_away(&error) && Instant::now() < deadline => {
                pause().await;
            }
            Err(error) => return Err(error),
            Ok(view) => return Ok(view.state),
        }
    }
}

/// Why the sandbox before this one is gone, where there was one.
async fn replaced(turn: &Turn, by: SandboxId) -> Result<Option<String>, StoreError> {
    let all = turn.app.store().leases_of_thread(turn.thread.id).await?;
    Ok(all
        .into_iter()
        .find(|lease| lease.id != by && lease.ended_why != Some(EndedWhy::StartFailed))
        .map(|lease| lease.ended_detail.unwrap_or_default()))
}

async fn make(turn: &Turn, access: &Access, step: Option<u32>) -> Result<Ready, TurnError> {
    let (id, begun) = (SandboxId::new(), Instant::now());
    let replaces = replaced(turn, id).await?;
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
        Ok(Err(error)) => return Err(failure::of_sandbox(error)),
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
    let (lease, grant) = used.map_err(failure::of_sandbox)?;
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
