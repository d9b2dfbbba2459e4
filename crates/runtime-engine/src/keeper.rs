//! The task that stays attached to one sandbox: it carries one session after the other, and
//! notices the end.

use std::time::Duration;

use bollard::models::ContainerInspectResponse;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::record::Magic;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::engine::{Engine, EngineError};
use crate::link::{Requests, Session};
use crate::table::Table;

/// How long an agent that runs may take to acknowledge a hello.
pub(crate) const HELLO_PATIENCE: Duration = Duration::from_secs(15);

/// How often an engine that does not answer is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// What it takes to stay attached.
pub(crate) struct Keeper {
    pub(crate) engine: Engine,
    pub(crate) table: Table,
    pub(crate) id: SandboxId,
    pub(crate) container: String,
    pub(crate) magic: Magic,
    pub(crate) requests: Requests,
}

impl Keeper {
    /// Carries this session, where there is one already, and those after it until the container has
    /// ended.
    pub(crate) async fn keep(mut self, mut session: Option<Session>) {
        let mut again = interval(ASK_AGAIN);
        again.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            if let Some(session) = session.take() {
                // Whatever ended it: what counts is whether the container still runs.
                let _ = session.carry(&mut self.requests).await;
            }
            match self.engine.inspect(&self.container).await {
                Ok(found) => match end_of(&found) {
                    Some(reason) => return self.table.mark_ended(self.id, &reason),
                    None => session = self.attach_again().await,
                },
                Err(EngineError::Missing(_)) => {
                    return self
                        .table
                        .mark_ended(self.id, "it was removed from outside");
                }
                // The engine is away; the container may live on, and ours it is.
                Err(_) => {}
            }
            if session.is_none() {
                again.tick().await;
            }
        }
    }

    async fn attach_again(&self) -> Option<Session> {
        let attached = self.engine.attach(&self.container).await.ok()?;
        let begun = timeout(HELLO_PATIENCE, Session::begin(attached, self.magic)).await;
        begun.ok()?.ok()
    }
}

/// Why a container has ended, if it has.
pub(crate) fn end_of(found: &ContainerInspectResponse) -> Option<String> {
    let state = found.state.as_ref()?;
    if state.running == Some(true) {
        return None;
    }
    let status = state.exit_code.unwrap_or_default();
    let killed = 128 + 9;
    Some(match (status, state.oom_killed) {
        (_, Some(true)) if status == killed => "it ran out of memory".into(),
        (_, _) if status == killed => "it was killed from outside".into(),
        _ => format!("its agent ended with status {status}"),
    })
}
