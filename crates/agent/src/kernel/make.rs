//! How there comes to be a kernel: from the launcher's template where the sandbox was made for
//! that, else by starting a program.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::event::Outcome;
use tokio::time::{Instant, timeout_at};

use super::host::{KernelHost, START_LIMIT, Seat};
use super::live::{Live, end_of};
use super::run::Run;
use super::starting::{KernelStartError, Starting};

/// The first cell of a kernel that is made in advance. It leaves nothing behind.
const REHEARSED: &str = "1 + 1";

impl KernelHost {
    /// Sees to it that there is a kernel before anybody asks for one, and calls `ready` then.
    /// Whoever comes meanwhile waits for it. Where `rehearsed` is asked for, a first cell has run in
    /// it by then, so that the first one of a user finds everything in its place.
    pub(crate) fn prepare(
        self: &Arc<Self>,
        rehearsed: bool,
        ready: impl FnOnce() + Send + 'static,
    ) {
        let host = Arc::clone(self);
        let in_use = self.parts.activity.begin();
        // At once, where nobody is there: a request that comes next finds the seat taken.
        let seat = Arc::clone(&self.seat).try_lock_owned();
        tokio::spawn(async move {
            let mut seat = match seat {
                Ok(seat) => seat,
                Err(_) => Arc::clone(&host.seat).lock_owned().await,
            };
            match host.ensure(&mut seat, START_LIMIT).await {
                Ok(made) => {
                    seat.unasked |= made;
                    match host.rehearse(&mut seat, rehearsed && made).await {
                        Ok(()) => ready(),
                        Err(outcome) => (host.parts.words)(&format!(
                            "the first cell of a kernel that was made in advance {outcome}"
                        )),
                    }
                }
                Err(error) => (host.parts.words)(&format!("no kernel came up: {error}")),
            }
            drop(in_use);
        });
    }

    /// Lets a kernel that nobody has used run through an empty cell: its first call is on its way
    /// here, and on another processor than the one that checks it. While it lay idle the code for
    /// calls has left the caches, and back in memory a call takes three times as long.
    pub(crate) fn warm(&self) {
        let Ok(mut seat) = self.seat.try_lock() else {
            return;
        };
        let Seat {
            kernel: Some(kernel),
            unasked: true,
            ..
        } = &mut *seat
        else {
            return;
        };
        kernel.wire.send_warm();
    }

    async fn rehearse(self: &Arc<Self>, seat: &mut Seat, is_wanted: bool) -> Result<(), Outcome> {
        if !is_wanted {
            return Ok(());
        }
        match Run::rehearse(self, seat, REHEARSED).await {
            outcome if outcome.is_success() => Ok(()),
            outcome => Err(outcome),
        }
    }

    /// Makes a kernel for a caller unless one is alive. `env` holds the variables that the caller
    /// gave; they count for a kernel that nobody has asked for before.
    pub(super) async fn ensure_for(
        self: &Arc<Self>,
        seat: &mut Seat,
        env: Option<BTreeMap<String, String>>,
        limit: Duration,
    ) -> Result<(), KernelStartError> {
        let unasked = std::mem::take(&mut seat.unasked);
        let alive = seat.kernel.as_mut().filter(|kernel| kernel.is_alive());
        if let Some(env) = env
            && (alive.is_none() || unasked)
        {
            if let Some(kernel) = alive
                && !env.is_empty()
            {
                // A failure means that it is ending, which the next call finds out.
                let _ = kernel.wire.send_environment(&env).await;
            }
            seat.env = env;
        }
        self.ensure(seat, limit).await.map(drop)
    }

    /// Makes a kernel unless one is alive. Says whether it had to.
    async fn ensure(
        self: &Arc<Self>,
        seat: &mut Seat,
        limit: Duration,
    ) -> Result<bool, KernelStartError> {
        if let Some(kernel) = &mut seat.kernel {
            if kernel.is_alive() {
                return Ok(false);
            }
            let end = end_of(&mut kernel.ended).await;
            self.facts
                .with(|facts| facts.note_end(facts.generation, &end));
        }
        seat.kernel = None;
        match self.make(&seat.env, limit).await {
            Ok(live) => {
                let generation = self.facts.with(|facts| facts.note_ready(&live));
                let (host, mut ended) = (Arc::downgrade(self), live.ended.clone());
                tokio::spawn(async move {
                    let end = end_of(&mut ended).await;
                    if let Some(host) = host.upgrade() {
                        host.facts.with(|facts| facts.note_end(generation, &end));
                    }
                });
                seat.kernel = Some(live);
                self.pipes.prepare();
                Ok(true)
            }
            Err(error) => {
                self.facts
                    .with(|facts| facts.note_failure(error.to_string()));
                Err(error)
            }
        }
    }

    async fn make(
        &self,
        env: &BTreeMap<String, String>,
        limit: Duration,
    ) -> Result<Live, KernelStartError> {
        let deadline = Instant::now().checked_add(limit);
        let deadline = deadline.unwrap_or_else(|| Instant::now() + START_LIMIT);
        if let Some(supply) = &self.parts.supply {
            self.facts.with(|facts| facts.note_start(None));
            match timeout_at(deadline, supply.next()).await {
                Ok(Ok(starting)) => {
                    let mut live = self.follow(starting, deadline, limit).await?;
                    if !env.is_empty() {
                        // As above.
                        let _ = live.wire.send_environment(env).await;
                    }
                    return Ok(live);
                }
                Ok(Err(reason)) => (self.parts.words)(&format!(
                    "there is no kernel from a template, so one is started: {reason}"
                )),
                Err(_) => return Err(KernelStartError::too_slow(limit)),
            }
        }
        let parts = &self.parts;
        let starting = Starting::spawn(&parts.workload, &parts.python, env)?;
        self.follow(starting, deadline, limit).await
    }

    async fn follow(
        &self,
        starting: Starting,
        deadline: Instant,
        limit: Duration,
    ) -> Result<Live, KernelStartError> {
        let child = starting.child().clone();
        self.facts.with(|facts| facts.note_start(Some(child)));
        starting.ready(&self.parts.workload, deadline, limit).await
    }
}
