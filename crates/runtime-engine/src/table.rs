//! Which sandboxes there are, as far as the driver knows without asking the engine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::{RuntimeError, Sandbox, SandboxState};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

use crate::link::Wanted;

/// One sandbox.
#[derive(Debug)]
struct Entry {
    /// Its container; none while it is being made.
    container: Option<String>,
    state: SandboxState,
    hard_deadline_ms: Option<i64>,
    /// Where streams to its agent are asked for.
    streams: Option<mpsc::Sender<Wanted>>,
    /// The task that is attached to it.
    keeper: Option<JoinHandle<()>>,
    /// Ends it at its hard deadline.
    timer: Option<AbortHandle>,
}

/// The sandboxes of one driver. Clones are the same table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table(Arc<Mutex<HashMap<SandboxId, Entry>>>);

/// What keeps a sandbox that runs.
pub(crate) struct Kept {
    pub(crate) container: String,
    pub(crate) streams: mpsc::Sender<Wanted>,
    pub(crate) keeper: JoinHandle<()>,
    pub(crate) timer: Option<AbortHandle>,
}

impl Table {
    /// Takes an id before the engine is asked.
    pub(crate) fn reserve(&self, id: SandboxId, deadline: Option<i64>) -> Result<(), RuntimeError> {
        self.insert(id, None, SandboxState::Running, deadline)
    }

    /// Takes up a container that has ended before we came.
    pub(crate) fn insert_ended(
        &self,
        id: SandboxId,
        container: String,
        reason: String,
        deadline: Option<i64>,
    ) -> Result<(), RuntimeError> {
        self.insert(
            id,
            Some(container),
            SandboxState::Ended { reason },
            deadline,
        )
    }

    fn insert(
        &self,
        id: SandboxId,
        container: Option<String>,
        state: SandboxState,
        hard_deadline_ms: Option<i64>,
    ) -> Result<(), RuntimeError> {
        use std::collections::hash_map::Entry as Slot;
        match self.lock().entry(id) {
            Slot::Occupied(_) => Err(RuntimeError::AlreadyExists { id }),
            Slot::Vacant(slot) => {
                slot.insert(Entry {
                    container,
                    state,
                    hard_deadline_ms,
                    streams: None,
                    keeper: None,
                    timer: None,
                });
                Ok(())
            }
        }
    }

    /// Writes down which container it is, as soon as there is one.
    pub(crate) fn set_container(&self, id: SandboxId, container: &str) {
        if let Some(entry) = self.lock().get_mut(&id) {
            entry.container = Some(container.into());
        }
    }

    /// Writes down that it runs. Where it was removed meanwhile, what keeps it is given back.
    pub(crate) fn keep(&self, id: SandboxId, kept: Kept) -> Result<(), Kept> {
        match self.lock().get_mut(&id) {
            Some(entry) => {
                entry.container = Some(kept.container);
                entry.streams = Some(kept.streams);
                entry.keeper = Some(kept.keeper);
                entry.timer = kept.timer;
                Ok(())
            }
            None => Err(kept),
        }
    }

    /// Where to ask for streams to the agent of a sandbox.
    pub(crate) fn streams(&self, id: SandboxId) -> Result<mpsc::Sender<Wanted>, RuntimeError> {
        let table = self.lock();
        let reason = match table.get(&id) {
            Some(entry) => match (&entry.state, &entry.streams) {
                (SandboxState::Ended { reason }, _) => Some(reason.clone()),
                (SandboxState::Running, Some(streams)) => return Ok(streams.clone()),
                (SandboxState::Running, None) => Some("it is still being made".into()),
            },
            None => None,
        };
        Err(RuntimeError::NotFound { id, reason })
    }

    pub(crate) fn container(&self, id: SandboxId) -> Option<String> {
        self.lock().get(&id)?.container.clone()
    }

    /// Lets go of a container: nobody is attached to it when this returns.
    pub(crate) async fn let_go(&self, id: SandboxId) {
        let (keeper, timer) = match self.lock().get_mut(&id) {
            Some(entry) => {
                entry.streams = None;
                (entry.keeper.take(), entry.timer.take())
            }
            None => (None, None),
        };
        if let Some(keeper) = keeper {
            keeper.abort();
            // That it was cut short is what was wanted.
            let _ = keeper.await;
        }
        // Last, as it may be the timer itself that does this.
        drop(timer);
    }

    /// Lets go of all of them, without waiting. They go on.
    pub(crate) fn abandon(&self) {
        for (_, entry) in self.lock().drain() {
            entry.keeper.iter().for_each(JoinHandle::abort);
            entry.timer.iter().for_each(AbortHandle::abort);
        }
    }

    /// Writes down that a sandbox has ended. The first reason stays.
    pub(crate) fn mark_ended(&self, id: SandboxId, why: &str) {
        if let Some(entry) = self.lock().get_mut(&id)
            && entry.state == SandboxState::Running
        {
            entry.state = SandboxState::Ended { reason: why.into() };
            entry.streams = None;
        }
    }

    /// Why a sandbox has ended, if it has.
    pub(crate) fn end_reason(&self, id: SandboxId) -> Option<String> {
        match &self.lock().get(&id)?.state {
            SandboxState::Ended { reason } => Some(reason.clone()),
            SandboxState::Running => None,
        }
    }

    pub(crate) fn forget(&self, id: SandboxId) {
        if let Some(Entry {
            timer: Some(timer), ..
        }) = self.lock().remove(&id)
        {
            timer.abort();
        }
    }

    pub(crate) fn view(&self, id: SandboxId) -> Option<Sandbox> {
        self.lock().get(&id).map(|entry| view(id, entry))
    }

    pub(crate) fn view_all(&self) -> Vec<Sandbox> {
        self.lock()
            .iter()
            .map(|(id, entry)| view(*id, entry))
            .collect()
    }

    /// Nothing panics while it holds the lock; if something did, the data are still whole.
    fn lock(&self) -> MutexGuard<'_, HashMap<SandboxId, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn view(id: SandboxId, entry: &Entry) -> Sandbox {
    Sandbox {
        id,
        state: entry.state.clone(),
        hard_deadline_ms: entry.hard_deadline_ms,
        agent_epoch: None,
    }
}
