//! The previews that this process is making, and the sandboxes that it makes them in: what is not done
//! when the process is told to stop is given back, and no sandbox of it stays.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
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

/// What is being made here.
#[derive(Debug, Default)]
pub(crate) struct InHand {
    all: Mutex<BTreeMap<Hand, One>>,
}

/// One making of a preview. The preview alone does not name it: after a sleep of the machine another hand of
/// this very process may have taken the same task anew, and each has a sandbox of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hand {
    preview: PreviewId,
    /// How often its task had been taken then.
    taken: i64,
}

#[derive(Debug)]
struct One {
    task: Task,
    sandbox: Option<SandboxId>,
    /// How often it had been tried before.
    tried: Contents,
}

impl InHand {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Hand, One>> {
        // A map has no state in which it could be left half changed.
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on it is being made. It is not forgotten by being dropped: whoever ends the process
    /// looks what there still is.
    pub(super) fn begin(&self, preview: &Preview, task: &Task) -> Hand {
        let hand = Hand {
            preview: preview.id,
            taken: task.attempts,
        };
        let one = One {
            task: task.clone(),
            sandbox: None,
            tried: Contents::of(preview).tried(),
        };
        self.lock().insert(hand, one);
        hand
    }

    /// The sandbox that it is made in.
    pub(super) fn uses(&self, hand: Hand, sandbox: SandboxId) {
        if let Some(one) = self.lock().get_mut(&hand) {
            one.sandbox = Some(sandbox);
        }
    }

    /// Which sandbox it is made in.
    pub(super) fn sandbox(&self, hand: Hand) -> Option<SandboxId> {
        self.lock().get(&hand)?.sandbox
    }

    /// It is not made by this hand any more.
    pub(super) fn end(&self, hand: Hand) {
        self.lock().remove(&hand);
    }
}

/// Ends the sandboxes of the previews that are being made here, and lets somebody else make them,
/// without an attempt that counts. Nobody makes any here meanwhile.
pub(crate) async fn give_back(app: &App) {
    let all = std::mem::take(&mut *app.in_hand().lock());
    let each = all.into_iter().map(|(hand, one)| async move {
        if let Some(id) = one.sandbox {
            sandbox::end(app, id, STOPPED).await;
        }
        if let Err(error) = put_back(app, hand.preview, &one).await {
            tracing::warn!(preview = %hand.preview, error = chain(&error), "giving back a preview");
        }
    });
    let given = timeout(GIVING_BACK, futures_util::future::join_all(each)).await;
    if given.is_err() {
        tracing::warn!("not all previews that were being made were given back");
    }
}

/// Lets somebody else make one. What is made in a sandbox has no attempt more than before; what is read here
/// keeps the one that counts with its task, of which there are enough for the moment that it takes.
async fn put_back(app: &App, preview: PreviewId, one: &One) -> Result<(), StoreError> {
    // Somebody else may make it already, or it was brought to its end.
    if !app.store().hold_task(&one.task, milliseconds()).await? {
        return Ok(());
    }
    let contents = serde_json::to_value(&one.tried).unwrap_or_default();
    app.store()
        .note_preview(preview, PreviewState::Waiting, &contents)
        .await?;
    app.store()
        .retry_task(one.task.id, Utc::now(), STOPPED)
        .await
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::ids::TaskId;

    use super::*;

    #[test]
    fn two_hands_on_one_preview_end_each_for_itself() {
        let in_hand = InHand::default();
        let preview = PreviewId::new();
        let hand = |taken| Hand { preview, taken };
        let one = |attempts| One {
            task: Task {
                id: TaskId::new(),
                kind: String::new(),
                subject: String::new(),
                payload: serde_json::Value::Null,
                attempts,
            },
            sandbox: None,
            tried: Contents::default(),
        };
        let [first, second] = [1, 2].map(hand);
        in_hand.lock().insert(first, one(1));
        in_hand.lock().insert(second, one(2));
        let [old, new] = [SandboxId::new(), SandboxId::new()];
        in_hand.uses(second, new);
        in_hand.uses(first, old);
        in_hand.end(first);
        assert_eq!(in_hand.sandbox(first), None);
        assert_eq!(in_hand.sandbox(second), Some(new));
    }
}
