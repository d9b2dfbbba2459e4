//! The executions that this process drives, and who waits for their events.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use glovebox_protocol::ids::ExecutionId;
use tokio::sync::watch;

/// Executions of this process. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Running {
    executions: Arc<Mutex<HashMap<ExecutionId, watch::Sender<u64>>>>,
}

/// Keeps an execution known as running here for as long as it lives.
#[derive(Debug)]
pub struct Driven {
    id: ExecutionId,
    all: Running,
}

impl Running {
    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, watch::Sender<u64>>> {
        // A map of senders has no state in which it could be left half changed.
        self.executions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on this process drives an execution.
    pub fn begin(&self, id: ExecutionId) -> Driven {
        self.lock().insert(id, watch::Sender::new(0));
        Driven {
            id,
            all: self.clone(),
        }
    }

    /// The number of the last event that is stored, as it grows; closed when the execution has
    /// ended. Nothing where another process drives it, or nobody.
    pub fn follow(&self, id: ExecutionId) -> Option<watch::Receiver<u64>> {
        self.lock().get(&id).map(watch::Sender::subscribe)
    }

    /// Which executions this process drives.
    pub fn ids(&self) -> Vec<ExecutionId> {
        self.lock().keys().copied().collect()
    }
}

impl Driven {
    /// Events up to this number are stored.
    pub fn stored(&self, seq: u64) {
        if let Some(sender) = self.all.lock().get(&self.id) {
            sender.send_replace(seq);
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.all.lock().remove(&self.id);
    }
}
