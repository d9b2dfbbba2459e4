//! A runtime that only plays one: agents without any isolation, in this process.
//!
//! It is the readable reference of what the trait asks for, and what tests of everything that
//! stands on a runtime run on. Only test builds have it: it protects from nothing, and says so in
//! its capabilities.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use glovebox_agent::{Agent, Options, Spawner};
use glovebox_protocol::agent_config::{AgentConfig, AgentFds, AgentIds, Claim};
use glovebox_protocol::gateway::HARD_LIMIT_REACHED;
use glovebox_protocol::ids::SandboxId;
use tempfile::TempDir;
use tokio::task::AbortHandle;

use crate::{
    AgentStream, Capabilities, Capability, Description, Reply, Runtime, RuntimeError, Sandbox,
    SandboxSpec, SandboxState, Start, ValidatedSpec,
};

/// Bytes that a stream to a fake agent holds before its writer waits.
const STREAM_BYTES: usize = 256 * 1024;

/// A failure that is played on the next `create`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// There is no room.
    Exhausted,
    /// The runtime cannot be reached.
    Unavailable,
}

struct Entry {
    state: State,
    hard_deadline_ms: Option<i64>,
    /// Ends the sandbox at its hard deadline.
    timer: Option<AbortHandle>,
}

enum State {
    Running {
        agent: Agent,
        /// Cut when the sandbox ends, as those to a sealed one would be.
        connections: Vec<AbortHandle>,
        _workspace: TempDir,
    },
    Ended {
        reason: String,
    },
}

/// Sandboxes that are none.
pub struct FakeRuntime {
    python: PathBuf,
    env: BTreeMap<String, String>,
    sandboxes: std::sync::Arc<Mutex<HashMap<SandboxId, Entry>>>,
    faults: Mutex<VecDeque<Fault>>,
}

impl FakeRuntime {
    /// A runtime whose agents start this Python, with these variables on top of the fixed ones.
    #[must_use]
    pub fn new(python: PathBuf, env: BTreeMap<String, String>) -> Self {
        Self {
            python,
            env,
            sandboxes: std::sync::Arc::default(),
            faults: Mutex::default(),
        }
    }

    /// Makes the next `create` fail.
    pub fn fail_next(&self, fault: Fault) {
        lock(&self.faults).push_back(fault);
    }

    fn make(&self, spec: SandboxSpec) -> Result<Sandbox, RuntimeError> {
        match lock(&self.faults).pop_front() {
            Some(Fault::Exhausted) => {
                return Err(RuntimeError::Exhausted("a fault was asked for".into()));
            }
            Some(Fault::Unavailable) => {
                return Err(RuntimeError::Unavailable {
                    doing: "making a sandbox".into(),
                    fix: None,
                    cause: "a fault was asked for".into(),
                });
            }
            None => {}
        }
        if spec.start == Start::Template {
            return Err(RuntimeError::Unsupported {
                what: "template_start".into(),
                fix: Some("ask for a fresh start".into()),
                cause: Some("there is no launcher that could keep a template".into()),
            });
        }
        let id = spec.id;
        let mut sandboxes = lock(&self.sandboxes);
        if sandboxes.contains_key(&id) {
            return Err(RuntimeError::AlreadyExists { id });
        }
        let hard_deadline_ms = spec.hard_deadline_ms;
        let state = self.start_agent(spec)?;
        let timer = hard_deadline_ms.map(|deadline| self.end_at(id, deadline));
        sandboxes.insert(
            id,
            Entry {
                state,
                hard_deadline_ms,
                timer,
            },
        );
        Ok(Sandbox {
            id,
            state: SandboxState::Running,
            hard_deadline_ms,
            agent_epoch: None,
        })
    }

    fn start_agent(&self, spec: SandboxSpec) -> Result<State, RuntimeError> {
        let internal = |doing: &str, cause: crate::Cause| RuntimeError::Internal {
            doing: doing.into(),
            cause,
        };
        let workspace = tempfile::tempdir()
            .map_err(|source| internal("making a workspace folder", source.into()))?;
        let config = AgentConfig {
            claim: Some(Claim {
                sandbox: spec.id,
                installation: spec.installation,
                keys: spec.keys,
                input_limits: spec.input_limits,
                idle_limit_ms: spec.idle_limit_ms,
                is_unclaimed: spec.is_unclaimed,
            }),
            limits: spec.limits,
            start: spec.start,
            ids: AgentIds {
                agent: AgentIds::WORKLOAD,
                workload: AgentIds::WORKLOAD,
            },
            exec_helper: String::new(),
            python: self.python.to_string_lossy().into_owned(),
            fds: AgentFds {
                listener: -1,
                launcher: None,
                workload_cgroups: Vec::new(),
                oom_events: None,
            },
        };
        let spawner = Spawner::Direct {
            env: self.env.clone(),
        };
        let agent = Agent::new(config, Options::new(workspace.path(), spawner))
            .map_err(|source| internal("starting an agent", source.into()))?;
        Ok(State::Running {
            agent,
            connections: Vec::new(),
            _workspace: workspace,
        })
    }

    fn end_at(&self, id: SandboxId, deadline_ms: i64) -> AbortHandle {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let left = u64::try_from(deadline_ms.saturating_sub(now_ms)).unwrap_or(0);
        let at = tokio::time::Instant::now() + Duration::from_millis(left);
        let sandboxes = std::sync::Arc::clone(&self.sandboxes);
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            let reason = HARD_LIMIT_REACHED.into();
            let before = lock(&sandboxes)
                .get_mut(&id)
                .map(|entry| std::mem::replace(&mut entry.state, State::Ended { reason }));
            take_down(before).await;
        });
        timer.abort_handle()
    }

    fn open(&self, id: SandboxId) -> Result<Box<dyn AgentStream>, RuntimeError> {
        let mut sandboxes = lock(&self.sandboxes);
        let (agent, connections) = match sandboxes.get_mut(&id).map(|entry| &mut entry.state) {
            Some(State::Running {
                agent, connections, ..
            }) => Ok((agent.clone(), connections)),
            Some(State::Ended { reason }) => Err(Some(reason.clone())),
            None => Err(None),
        }
        .map_err(|reason| RuntimeError::NotFound { id, reason })?;
        let (ours, theirs) = tokio::io::duplex(STREAM_BYTES);
        let serving = tokio::spawn(async move { agent.serve_connection(theirs).await });
        connections.retain(|connection| !connection.is_finished());
        connections.push(serving.abort_handle());
        Ok(Box::new(ours))
    }

    /// Ends the agent's processes and cuts its connections.
    async fn end(&self, id: SandboxId, forget: bool) {
        let running = {
            let mut sandboxes = lock(&self.sandboxes);
            let Some(entry) = sandboxes.get_mut(&id) else {
                return;
            };
            if let Some(timer) = entry.timer.take() {
                timer.abort();
            }
            let ended = State::Ended {
                reason: "it was stopped".into(),
            };
            let before = match &entry.state {
                State::Running { .. } => Some(std::mem::replace(&mut entry.state, ended)),
                State::Ended { .. } => None,
            };
            if forget {
                sandboxes.remove(&id);
            }
            before
        };
        take_down(running).await;
    }
}

async fn take_down(state: Option<State>) {
    if let Some(State::Running {
        agent, connections, ..
    }) = state
    {
        agent.end_workload().await;
        for connection in connections {
            connection.abort();
        }
    }
}

impl Runtime for FakeRuntime {
    fn describe(&self) -> Description {
        Description {
            name: "fake",
            capabilities: [Capability::EndsSingleExecution]
                .into_iter()
                .collect::<Capabilities>(),
        }
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        Box::pin(async move { self.make(spec.into_inner()) })
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        Box::pin(async move {
            lock(&self.sandboxes)
                .get(&id)
                .map(|entry| view(id, entry))
                .ok_or(RuntimeError::NotFound { id, reason: None })
        })
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        Box::pin(async move {
            let sandboxes = lock(&self.sandboxes);
            Ok(sandboxes
                .iter()
                .map(|(id, entry)| view(*id, entry))
                .collect())
        })
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        Box::pin(async move { self.open(id) })
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(async move {
            self.end(id, false).await;
            Ok(())
        })
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(async move {
            self.end(id, true).await;
            Ok(())
        })
    }
}

fn view(id: SandboxId, entry: &Entry) -> Sandbox {
    Sandbox {
        id,
        state: match &entry.state {
            State::Running { .. } => SandboxState::Running,
            State::Ended { reason } => SandboxState::Ended {
                reason: reason.clone(),
            },
        },
        hard_deadline_ms: entry.hard_deadline_ms,
        agent_epoch: None,
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
