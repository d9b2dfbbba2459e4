//! Keeping the table true: what the runtime has is adopted at the start and looked at again and
//! again, what has reached its hard limit is ended, what nobody knows of is removed.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use glovebox_protocol::gateway::HARD_LIMIT_REACHED;
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::{Sandbox, SandboxState};
use serde_json::json;
use tokio::time::{MissedTickBehavior, timeout};

use crate::budget;
use crate::error::chain;
use crate::relay::Pool;
use crate::state::Shared;
use crate::table::{Entry, Phase};

/// How often the table is looked through. The runtime itself ends sandboxes at their limit.
const EVERY: Duration = Duration::from_secs(2);

/// How long the runtime may take to list its sandboxes; then it is asked anew.
const PATIENCE: Duration = Duration::from_secs(30);

/// Looks again and again, as long as there is a gateway.
pub(crate) async fn keep(shared: Weak<Shared>) {
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut failing = false;
    loop {
        tick.tick().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let failed = look(&shared).await.err();
        // Told when it begins, not every time.
        if let (Some(message), false) = (&failed, failing) {
            let facts = json!({ "message": message });
            shared
                .journal
                .tell(shared.now_ms(), "runtime_unavailable", facts);
        }
        failing = failed.is_some();
    }
}

/// Compares the table with the runtime once, and acts on what differs.
pub(crate) async fn look(shared: &Arc<Shared>) -> Result<(), String> {
    // What comes into the table from here on may be missing in the list; what leaves it may be in.
    let before = shared.table.page(None, usize::MAX, |id, entry| {
        (id, matches!(entry.phase, Phase::Running))
    });
    let doing = "asking the runtime for its sandboxes";
    let listed = match timeout(PATIENCE, shared.runtime.list()).await {
        Ok(listed) => listed.map_err(|error| chain(doing, &error))?,
        Err(elapsed) => return Err(chain(doing, &elapsed)),
    };
    let listed: HashMap<SandboxId, Sandbox> = listed.into_iter().map(|one| (one.id, one)).collect();
    if !shared.is_adopted() {
        adopt(shared, listed.values());
        shared.set_adopted();
    }
    for sandbox in listed.values() {
        settle(shared, sandbox).await;
    }
    for (id, was_running) in before {
        if was_running && !listed.contains_key(&id) {
            end(shared, id, "the runtime has no such sandbox any more");
        }
    }
    end_overdue(shared).await;
    budget::measure(shared).await;
    shared.table.forget_old(shared.now_ms());
    shared
        .table
        .page(None, usize::MAX, |_, entry| entry.pool.close_old());
    Ok(())
}

/// Takes over what another life of the gateway has made.
fn adopt<'a>(shared: &Shared, listed: impl Iterator<Item = &'a Sandbox>) {
    for sandbox in listed {
        let entry = Entry {
            asked: None,
            phase: Phase::Running,
            hard_deadline_ms: sandbox.hard_deadline_ms,
            agent_epoch: None,
            reserve_bytes: budget::reserve(None),
            pool: Arc::new(Pool::default()),
        };
        let inserted = shared.table.insert(sandbox.id, entry, |_| (), |_| Ok(()));
        if inserted.is_ok() {
            let facts = json!({ "sandbox": sandbox.id });
            shared
                .journal
                .tell(shared.now_ms(), "sandbox_adopted", facts);
        }
    }
}

/// Acts on what the runtime says of one sandbox.
async fn settle(shared: &Arc<Shared>, sandbox: &Sandbox) {
    let id = sandbox.id;
    let phase = shared.table.with(id, |entry| entry.phase.clone());
    match (phase, &sandbox.state) {
        (Some(Phase::Starting(_)), _) | (Some(Phase::Running), SandboxState::Running) => {}
        (Some(Phase::Running), SandboxState::Ended { reason }) => {
            end(shared, id, reason);
            remove(shared, id).await;
        }
        // What has ended for us is what could not be removed before; the rest is what is left of a
        // create that failed. It carries our label and installation, else it would not be listed.
        (Some(Phase::Ended { .. }) | None, _) => {
            remove(shared, id).await;
        }
    }
}

/// Ends what has reached its hard limit, where the runtime has not done so itself.
async fn end_overdue(shared: &Arc<Shared>) {
    let now_ms = shared.now_ms();
    let overdue = shared.table.page(None, usize::MAX, |id, entry| {
        let is_over = entry.hard_deadline_ms.is_some_and(|at| at <= now_ms);
        (is_over && matches!(entry.phase, Phase::Running)).then_some(id)
    });
    for id in overdue.into_iter().flatten() {
        if remove(shared, id).await {
            end(shared, id, HARD_LIMIT_REACHED);
        }
    }
}

fn end(shared: &Shared, id: SandboxId, reason: &str) {
    let now_ms = shared.now_ms();
    if shared.table.ended(id, reason, now_ms) {
        let facts = json!({ "sandbox": id, "message": reason });
        shared.journal.tell(now_ms, "sandbox_ended", facts);
    }
}

async fn remove(shared: &Shared, id: SandboxId) -> bool {
    match shared.runtime.remove(id).await {
        Ok(()) => true,
        Err(error) => {
            let message = chain("removing a sandbox", &error);
            let facts = json!({ "sandbox": id, "message": message });
            shared.journal.tell(shared.now_ms(), "not_removed", facts);
            false
        }
    }
}
