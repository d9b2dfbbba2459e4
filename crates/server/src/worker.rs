//! What is done in the background: by a server beside its requests, or by `glovebox worker`.
//!
//! Work comes in queues, in the database that all processes share: each task is done by whichever
//! of them takes it first, so there may be any number of them, and one that is killed is replaced.

mod forget;
mod preview;
mod ready;
mod sweep;
mod threads;

use std::str::FromStr;
use std::time::{Duration, Instant};

use chrono::{TimeDelta, Utc};
use futures_util::future::join_all;
use glovebox_store::{StoreError, Task};
use serde_json::json;
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::failure::chain;

pub(crate) use preview::{InHand, give_back};

/// How often a worker looks whether something is due.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// For how long a task is one worker's: after that it counts as killed, and the next one takes it.
pub(crate) const TAKEN: Duration = Duration::from_secs(15);

/// After how long everything is looked through again.
const SWEEP_EVERY: TimeDelta = TimeDelta::seconds(5);

/// How many previews one process makes at once.
const PREVIEWS_AT_ONCE: usize = 2;

/// Where previews of text wait: within a process they belong to [`Queue::Preview`], with a hand of
/// their own.
pub(crate) const TEXT_PREVIEWS: &str = "preview_text";

/// The one task of the queue `sandbox`.
const SWEEP: &str = "sweep";

/// How often the executions that this process drives are marked as driven.
const MARK_EVERY: Duration = Duration::from_secs(10);

/// For how long an execution without a sign of whoever drives it counts as driven, in seconds.
pub(crate) const DRIVEN_SECONDS: i64 = 30;

/// A queue of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Queue {
    /// Sandboxes and leases brought together, and what nobody drives any more ended.
    Sandbox,
    /// Previews of files, each made in a throwaway sandbox.
    Preview,
}

/// A word that names no queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no queue; there is: {all}", all = Queue::ALL.map(Queue::name).join(", "))]
pub struct UnknownQueue(String);

impl Queue {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sandbox, Self::Preview];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Preview => "preview",
        }
    }
}

impl FromStr for Queue {
    type Err = UnknownQueue;

    fn from_str(name: &str) -> Result<Self, UnknownQueue> {
        let mut all = Self::ALL.into_iter();
        all.find(|queue| queue.name() == name)
            .ok_or_else(|| UnknownQueue(name.to_owned()))
    }
}

/// Works on queues, each for itself: previews take long, and sandboxes are looked after meanwhile.
/// Never returns; may be dropped at any moment.
pub(crate) async fn run(app: App, queues: Vec<Queue>) {
    let hands = queues.iter().flat_map(|queue| {
        let app = &app;
        let names = match queue {
            Queue::Sandbox => vec![queue.name()],
            Queue::Preview => {
                let mut names = vec![queue.name(); PREVIEWS_AT_ONCE];
                names.push(TEXT_PREVIEWS);
                names
            }
        };
        names
            .into_iter()
            .map(move |name| work_on(app, *queue, name))
    });
    join_all(hands).await;
}

/// Works on what waits under a name, which belongs to a queue.
async fn work_on(app: &App, queue: Queue, name: &str) {
    let mut ticks = ticks(LOOK_EVERY);
    let wanted = app.preview_wanted(name == TEXT_PREVIEWS);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = wanted.notified(), if queue == Queue::Preview => {}
        }
        // Until nothing is due any more.
        loop {
            match look_at(app, queue, name).await {
                Ok(true) if queue == Queue::Preview => {}
                Ok(_) => break,
                Err(error) => {
                    tracing::warn!(queue = name, error = chain(&error), "working on a queue");
                    break;
                }
            }
        }
    }
}

/// Marks the executions that this process drives, again and again. Never returns.
pub(crate) async fn mark_driven(app: App) {
    let mut ticks = ticks(MARK_EVERY);
    loop {
        ticks.tick().await;
        let driven = app.running().ids();
        if let Err(error) = app.store().mark_driven(&driven, DRIVEN_SECONDS).await {
            tracing::warn!(
                error = chain(&error),
                "marking the executions that this server drives"
            );
        }
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Does the task of a queue that is due, if there is one. Says whether there was.
async fn look_at(app: &App, queue: Queue, name: &str) -> Result<bool, StoreError> {
    let taken = i64::try_from(TAKEN.as_millis()).unwrap_or(i64::MAX);
    let Some(task) = app.store().take_task(name, taken).await? else {
        match queue {
            Queue::Sandbox => {
                ensure_sweep(app).await?;
                forget::ensure(app).await?;
            }
            Queue::Preview if name == TEXT_PREVIEWS => {}
            Queue::Preview => preview::ensure_forgetting(app).await?,
        }
        return Ok(false);
    };
    match queue {
        Queue::Sandbox if task.kind == forget::FORGET => forget::work(app, &task).await?,
        Queue::Sandbox => do_sweep(app, &task).await?,
        Queue::Preview => preview::make(app, &task).await?,
    }
    Ok(true)
}

/// Sees to it that there is the task to look everything through: it is put off, never finished.
async fn ensure_sweep(app: &App) -> Result<(), StoreError> {
    let mut changes = app.store().begin().await?;
    let queue = Queue::Sandbox.name();
    changes
        .enqueue(queue, SWEEP, "all", &json!({}), Utc::now())
        .await?;
    changes.commit().await
}

async fn do_sweep(app: &App, task: &Task) -> Result<(), StoreError> {
    let next = Utc::now() + SWEEP_EVERY;
    let begun = Instant::now();
    // Each for itself: what chat has left behind keeps no sandbox from its end.
    let tidied = threads::sweep(app).await;
    let swept = sweep::sweep(app).await;
    app.metrics().swept(begun, swept.is_ok() && tidied.is_ok());
    let done = match swept {
        Ok(()) => ready::keep(app).await,
        failed => failed,
    };
    let done = done.and(tidied.map_err(Into::into));
    match done {
        Ok(()) => app.store().repeat_task(task.id, next).await,
        Err(error) => {
            let error = chain(&error);
            tracing::warn!(error, "looking through sandboxes and leases");
            app.store().retry_task(task.id, next, &error).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_known_by_its_name_alone() {
        for queue in Queue::ALL {
            assert_eq!(queue.name().parse(), Ok(queue));
        }
        let unknown = "parsnips".parse::<Queue>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "`parsnips` is no queue; there is: sandbox, preview"
        );
    }
}
