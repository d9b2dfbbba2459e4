//! Which executions there are and were: an id is used once.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use glovebox_protocol::event::Ended;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::ExecutionState;
use tokio::net::unix::pipe;

use super::reaper::Child;
use crate::activity::{Activity, Use};
use crate::error::ApiError;
use crate::lock::Locked;
use crate::logs::{Logs, Recorder};

/// How many ended executions are remembered by id.
const REMEMBERED: usize = 20_000;

/// What was asked of a running execution from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Asked {
    #[default]
    Nothing,
    Interrupt,
    Kill,
}

/// A program that runs.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) asked: Locked<Asked>,
    /// Where its input goes in; nothing once it was closed, or if it never had one.
    pub(crate) stdin: tokio::sync::Mutex<Option<pipe::Sender>>,
}

/// All executions of this agent.
pub(crate) struct Registry {
    activity: Arc<Activity>,
    logs: Arc<Logs>,
    state: Locked<State>,
}

#[derive(Default)]
struct State {
    used: HashSet<ExecutionId>,
    order: VecDeque<ExecutionId>,
    running: HashMap<ExecutionId, Arc<Running>>,
    /// Those whose claim is still held.
    claimed: HashSet<ExecutionId>,
    ended: HashMap<ExecutionId, Ended>,
}

impl Registry {
    /// An empty one. Each execution counts as a use of the sandbox, and has a log.
    pub(crate) fn new(activity: Arc<Activity>, logs: Arc<Logs>) -> Self {
        Self {
            activity,
            logs,
            state: Locked::default(),
        }
    }

    /// Takes an id for a new execution.
    pub(crate) fn claim(self: &Arc<Self>, id: ExecutionId) -> Result<Claim, ApiError> {
        self.state.with(|state| {
            if !state.used.insert(id) {
                return Err(ApiError::conflict(format!(
                    "the execution {id} was started before"
                )));
            }
            state.order.push_back(id);
            if state.order.len() > REMEMBERED
                && let Some(oldest) = state.order.pop_front()
            {
                state.used.remove(&oldest);
                state.ended.remove(&oldest);
            }
            state.claimed.insert(id);
            Ok(Claim {
                registry: Arc::clone(self),
                log: self.logs.begin(id),
                id,
                _in_use: self.activity.begin(),
            })
        })
    }

    /// What became of an execution, for whoever was not there to hear it.
    pub(crate) fn look_up(&self, id: ExecutionId) -> Result<ExecutionState, ApiError> {
        self.state.with(|state| {
            if let Some(ended) = state.ended.get(&id) {
                Ok(ExecutionState::Ended {
                    ended: ended.clone(),
                })
            } else if state.claimed.contains(&id) {
                Ok(ExecutionState::Running)
            } else if state.used.contains(&id) {
                Ok(ExecutionState::Failed)
            } else {
                Err(ApiError::not_found(format!("there is no execution {id}")))
            }
        })
    }

    /// The program that runs under an id.
    pub(crate) fn running(&self, id: ExecutionId) -> Result<Arc<Running>, ApiError> {
        self.state.with(|state| {
            if let Some(running) = state.running.get(&id) {
                Ok(Arc::clone(running))
            } else if state.used.contains(&id) {
                Err(ApiError::conflict(format!("the execution {id} has ended")))
            } else {
                Err(ApiError::not_found(format!("there is no execution {id}")))
            }
        })
    }
}

/// The right to run under an id. Dropped when the run is over.
pub(crate) struct Claim {
    registry: Arc<Registry>,
    id: ExecutionId,
    log: Recorder,
    _in_use: Use,
}

impl Claim {
    pub(crate) const fn id(&self) -> ExecutionId {
        self.id
    }

    /// Writes down how it ended. To be called before the claim is dropped.
    pub(crate) fn end(&self, ended: &Ended) {
        self.registry
            .state
            .with(|state| state.ended.insert(self.id, ended.clone()));
    }

    /// Where its output is kept.
    pub(crate) fn log(&self) -> Recorder {
        self.log.clone()
    }

    /// Makes the program known to those who want to feed or cancel it.
    pub(crate) fn set_running(&self, running: Arc<Running>) {
        self.registry
            .state
            .with(|state| state.running.insert(self.id, running));
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.registry.state.with(|state| {
            state.running.remove(&self.id);
            state.claimed.remove(&self.id);
        });
    }
}
