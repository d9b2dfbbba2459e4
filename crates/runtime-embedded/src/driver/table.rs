//! Which sandboxes there are, as far as the driver knows without asking.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use glovebox_box::control::{BoxEnd, BoxFacts};
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::{RuntimeError, Sandbox, SandboxState};

use super::ready::Made;
use crate::link::{Watcher, lock};

#[derive(Debug)]
struct Entry {
    /// Where the agent listens and the like; known once the box is made.
    facts: Option<BoxFacts>,
    state: SandboxState,
    hard_deadline_ms: Option<i64>,
}

impl Entry {
    fn view(&self, id: SandboxId) -> Sandbox {
        Sandbox {
            id,
            state: self.state.clone(),
            hard_deadline_ms: self.hard_deadline_ms,
            agent_epoch: self.facts.as_ref().and_then(|facts| facts.agent_epoch),
        }
    }
}

/// The sandboxes of one launcher. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub(super) struct Table(Arc<Mutex<HashMap<SandboxId, Entry>>>);

impl Table {
    /// Takes an id before the launcher is asked, so that a box that ends at once is not missed.
    pub(super) fn reserve(
        &self,
        id: SandboxId,
        hard_deadline_ms: Option<i64>,
    ) -> Result<(), RuntimeError> {
        use std::collections::hash_map::Entry as Slot;
        match lock(&self.0).entry(id) {
            Slot::Occupied(_) => Err(RuntimeError::AlreadyExists { id }),
            Slot::Vacant(slot) => {
                slot.insert(Entry {
                    facts: None,
                    state: SandboxState::Running,
                    hard_deadline_ms,
                });
                Ok(())
            }
        }
    }

    /// Writes down what the launcher says of a box that it has made.
    pub(super) fn is_made(&self, id: SandboxId, facts: BoxFacts) {
        if let Some(entry) = lock(&self.0).get_mut(&id) {
            entry.facts = Some(facts);
        }
    }

    /// Takes in a box that was made for a runtime that is gone.
    pub(super) fn adopt(&self, facts: BoxFacts) {
        lock(&self.0).entry(facts.sandbox).or_insert(Entry {
            state: SandboxState::Running,
            hard_deadline_ms: facts.hard_deadline_ms,
            facts: Some(facts),
        });
    }

    /// How a sandbox was made, once it is.
    pub(super) fn made(&self, id: SandboxId) -> Option<Made> {
        let table = lock(&self.0);
        table.get(&id)?.facts.as_ref().map(Made::from)
    }

    /// Where the agent of a running sandbox listens.
    pub(super) fn socket(&self, id: SandboxId) -> Result<PathBuf, RuntimeError> {
        match lock(&self.0).get(&id) {
            Some(entry) => match &entry.state {
                SandboxState::Running => {
                    let facts = entry.facts.as_ref();
                    facts.map(|facts| facts.socket.clone()).ok_or(None)
                }
                SandboxState::Ended { reason } => Err(Some(reason.clone())),
            },
            None => Err(None),
        }
        .map_err(|reason| RuntimeError::NotFound { id, reason })
    }

    /// Why a sandbox has ended, if it has.
    pub(super) fn end_reason(&self, id: SandboxId) -> Option<String> {
        match &lock(&self.0).get(&id)?.state {
            SandboxState::Ended { reason } => Some(reason.clone()),
            SandboxState::Running => None,
        }
    }

    pub(super) fn is_running(&self, id: SandboxId) -> bool {
        lock(&self.0)
            .get(&id)
            .is_some_and(|entry| entry.state == SandboxState::Running)
    }

    /// Writes down that a sandbox has ended. The first reason stays.
    pub(super) fn mark_ended(&self, id: SandboxId, why: &str) {
        if let Some(entry) = lock(&self.0).get_mut(&id)
            && entry.state == SandboxState::Running
        {
            entry.state = SandboxState::Ended { reason: why.into() };
        }
    }

    /// Writes down that a sandbox has ended, which may have been made for a runtime that is gone.
    fn note_end(&self, id: SandboxId, why: &str) {
        self.mark_ended(id, why);
        lock(&self.0).entry(id).or_insert(Entry {
            facts: None,
            state: SandboxState::Ended { reason: why.into() },
            hard_deadline_ms: None,
        });
    }

    pub(super) fn forget(&self, id: SandboxId) {
        lock(&self.0).remove(&id);
    }

    pub(super) fn view(&self, id: SandboxId) -> Option<Sandbox> {
        lock(&self.0).get(&id).map(|entry| entry.view(id))
    }

    pub(super) fn view_all(&self) -> Vec<Sandbox> {
        let table = lock(&self.0);
        table.iter().map(|(id, entry)| entry.view(*id)).collect()
    }
}

impl Watcher for Table {
    fn found(&self, facts: &BoxFacts) {
        self.adopt(facts.clone());
    }

    fn ended(&self, sandbox: SandboxId, end: &BoxEnd) {
        self.note_end(sandbox, &end.to_string());
    }

    fn launcher_gone(&self) {
        let ids: Vec<_> = lock(&self.0).keys().copied().collect();
        for id in ids {
            self.mark_ended(id, "the launcher has ended");
        }
    }
}
