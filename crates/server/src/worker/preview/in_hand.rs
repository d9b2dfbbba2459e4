//! The previews that this process is making, and the sandboxes that it makes them in: what is not done
//! when the process is told to stop is given back, and no sandbox of it stays.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::Utc;
use glovebox_protocol::ids::{PreviewId, SandboxId};
use glovebox_store::{Preview, PreviewState, StoreError, Task};
use tokio::time::timeout;

use super::{milliseconds, sandbox};
use crate::app::App;
use crate::app::previews::contents::Contents;
use crate::failure::chain;

/// How long it may take at the end of a process to give back what it was making.
const GIVING_BACK: Duration = Duration::from_secs(10);

/// Why a preview waits that was being made when its worker was told to stop.
const STOPPED: &str = "the worker that made it was told to stop";

/// What is being made here. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct InHand {
    all: Arc<Mutex<BTreeMap<PreviewId, One>>>,
}

#[derive(Debug, Clone)]
struct One {
    task: Task,
    sandbox: Option<SandboxId>,
    /// How many sandboxes had been made for it before.
    begun: i64,
}

impl InHand {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<PreviewId, One>> {
        // A map has no state in which it could be left half changed.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it is being made. It is not forgotten by being dropped: whoever ends the process
    /// looks what there still is.
    pub(super) fn begin(&self, preview: &Preview, task: &Task) {
        let one = One {
            task: task.clone(),
            sandbox: None,
            begun: Contents::of(preview).begun,
        };
        self.lock().insert(preview.id, one);
    }

    /// The sandbox that it is made in.
    pub(super) fn uses(&self, preview: PreviewId, sandbox: SandboxId) {
        if let Some(one) = self.lock().get_mut(&preview) {
            one.sandbox = Some(sandbox);
        }
    }

    /// Which sandbox it is made in.
    pub(super) fn sandbox(&self, preview: PreviewId) -> Option<SandboxId> {
        self.lock().get(&preview)?.sandbox
    }

    /// It is not made here any more.
    pub(super) fn end(&self, preview: PreviewId) {
        self.lock().remove(&preview);
    }
}

/// Ends the sandboxes of the previews that are being made here, and lets somebody else make them,
/// without an attempt that counts. Nobody makes any here meanwhile.
pub(crate) async fn give_back(app: &App) {
    let all = std::mem::take(&mut *app.in_hand().lock());
    let each = all.into_iter().map(|(preview, one)| async move {
        if let Some(id) = one.sandbox {
            sandbox::end(app, id, STOPPED).await;
        }
        if let Err(error) = put_back(app, preview, &one).await {
            tracing::warn!(%preview, error = chain(&error), "giving back a preview");
        }
    });
    let given = timeout(GIVING_BACK, futures_util::future::join_all(each)).await;
    if given.is_err() {
        tracing::warn!("not all previews that were being made were given back");
    }
}

async fn put_back(app: &App, preview: PreviewId, one: &One) -> Result<(), StoreError> {
    // Somebody else may make it already.
    if !app.store().hold_task(&one.task, milliseconds()).await? {
        return Ok(());
    }
    let contents = serde_json::to_value(Contents::begun(one.begun)).unwrap_or_default();
    app.store()
        .note_preview(preview, PreviewState::Waiting, &contents)
        .await?;
    app.store()
        .retry_task(one.task.id, Utc::now(), STOPPED)
        .await
}
