//! Forgets what was kept for long enough: sessions that have run out, attempts to sign in that count
//! no more, and what was run in sandboxes that ended long ago.

use chrono::{TimeDelta, Utc};
use glovebox_store::{StoreError, Task};
use serde_json::json;

use super::Queue;
use crate::app::App;
use crate::app::account::ATTEMPT_WINDOW;

/// The kind of task.
pub(super) const FORGET: &str = "forget";

/// How many rows of a kind are taken away at once: others wait for the database meanwhile.
const BATCH: u32 = 200;

/// How often it is looked whether there is something to forget.
const EVERY: TimeDelta = TimeDelta::minutes(10);

/// Sees to it that there is the task: it is put off, never finished.
pub(super) async fn ensure(app: &App) -> Result<(), StoreError> {
    let mut changes = app.store().begin().await?;
    let queue = Queue::Sandbox.name();
    changes
        .enqueue(queue, FORGET, "all", &json!({}), Utc::now())
        .await?;
    changes.commit().await
}

/// Does it for this time: one batch of each kind, and again at once as long as there is more. What
/// else is in the queue has its turn between two batches.
pub(super) async fn work(app: &App, task: &Task) -> Result<(), StoreError> {
    let forgotten = batch(app).await?;
    let is_more = forgotten >= u64::from(BATCH);
    let due = if is_more {
        Utc::now()
    } else {
        Utc::now() + EVERY
    };
    app.store().repeat_task(task.id, due).await
}

/// Forgets one batch of each kind. Says how many rows of the kind with the most.
async fn batch(app: &App) -> Result<u64, StoreError> {
    let (store, now) = (app.store(), Utc::now());
    let window = TimeDelta::from_std(ATTEMPT_WINDOW).unwrap_or(TimeDelta::days(1));
    let history = TimeDelta::days(app.config().history_days.into());
    let sessions = store.forget_sessions(now, BATCH).await?;
    let attempts = store.forget_sign_ins(now - window, BATCH).await?;
    let runs = store.forget_runs(now - history, BATCH).await?;
    if sessions + attempts + runs > 0 {
        tracing::info!(sessions, attempts, runs, "forgotten after their time");
    }
    Ok(sessions.max(attempts).max(runs))
}
