//! A sandbox from the request until its agent answers.

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::agent_config::{AgentConfig, AgentFds, AgentIds, Claim};
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::record::{AttachedConfig, Magic};
use glovebox_protocol::sign::Epoch;
use glovebox_runtime::{
    Maker, Reply, RuntimeError, Sandbox, SandboxSpec, SandboxState, Start, ValidatedSpec,
    agent_answers,
};
use tokio::time::timeout;

use crate::body;
use crate::compare::differences;
use crate::driver::Inner;
use crate::engine::EngineError;
use crate::image;
use crate::labels::{Labels, container_name};
use crate::link::{LinkError, Session, random};

/// Where the image holds what the agent is told of.
const EXEC_HELPER: &str = "/opt/glovebox/bin/glovebox-exec";
const PYTHON: &str = "/opt/python/bin/python3";

/// How long an agent may take from its container's start to its first answer.
const START_PATIENCE: Duration = Duration::from_secs(90);

impl Inner {
    async fn make_here(self: &Arc<Self>, spec: SandboxSpec) -> Result<Sandbox, RuntimeError> {
        self.check(&spec)?;
        let id = spec.id;
        self.table.reserve(id, spec.hard_deadline_ms)?;
        match self.make_reserved(&spec).await {
            Ok(epoch) => Ok(Sandbox {
                id,
                state: SandboxState::Running,
                hard_deadline_ms: spec.hard_deadline_ms,
                agent_epoch: Some(epoch),
            }),
            Err(error) => {
                self.table.let_go(id).await;
                if let Some(container) = self.table.container(id) {
                    // What went wrong first is what has to be known; a container that cannot be
                    // removed now carries our label and is found at the next start.
                    let _ = self.engine.remove(&container).await;
                }
                self.table.forget(id);
                Err(error)
            }
        }
    }

    fn check(&self, spec: &SandboxSpec) -> Result<(), RuntimeError> {
        if spec.installation != self.installation {
            let fault = format!(
                "the sandbox is of installation {}, this runtime of {}",
                spec.installation, self.installation
            );
            return Err(RuntimeError::Invalid(fault.into()));
        }
        if spec.start == Start::Template {
            return Err(RuntimeError::Unsupported {
                what: "template_start".into(),
                fix: Some("ask for a fresh start".into()),
                cause: Some("containers have no process to copy a kernel from".into()),
            });
        }
        Ok(())
    }

    async fn make_reserved(self: &Arc<Self>, spec: &SandboxSpec) -> Result<Epoch, RuntimeError> {
        let id = spec.id;
        let doing = |what: &str| format!("{what} the container of sandbox {id}");
        let magic = Magic::new(random().map_err(|error| internal(doing("naming"), error))?);
        let labels = Labels {
            installation: self.installation,
            id,
            hard_deadline_ms: spec.hard_deadline_ms,
            magic,
        };
        let image = match &spec.image {
            Some(image) => image::resolve(&self.engine, image).await?,
            None => self.image.clone(),
        };
        let meant = body::container(&image, self.runtime.as_deref(), &spec.limits, &labels);
        let made = self.engine.create(&container_name(id), meant.clone()).await;
        let container = match made {
            Ok(container) => container,
            Err(EngineError::Conflict(_)) => return Err(RuntimeError::AlreadyExists { id }),
            Err(error) => return Err(error.while_doing(doing("making"))),
        };
        self.table.set_container(id, &container);

        let found = self.engine.inspect(&container).await;
        let found = found.map_err(|error| error.while_doing(doing("looking at")))?;
        // Before anything runs in it.
        if let Some(difference) = differences(&meant, &found).into_iter().next() {
            return Err(RuntimeError::Unsupported {
                what: difference.name.into(),
                fix: Some("the engine made another container than it was asked for; look at its configuration on the runtime's host".into()),
                cause: Some(difference.into()),
            });
        }

        // Attached before it starts, so that nothing is lost.
        let attached = self.engine.attach(&container).await;
        let attached = attached.map_err(|error| error.while_doing(doing("attaching to")))?;
        let started = self.engine.start(&container).await;
        started.map_err(|error| error.while_doing(doing("starting")))?;
        let answering = async {
            let mut session = Session::begin(attached, Magic::FIRST).await?;
            session.configure(&config(spec, magic)).await?;
            Ok::<_, LinkError>(session)
        };
        let not_ready = |cause: glovebox_runtime::Cause| RuntimeError::Unavailable {
            doing: format!("waiting for the agent of sandbox {id}"),
            fix: None,
            cause,
        };
        let session = match timeout(START_PATIENCE, answering).await {
            Ok(Ok(session)) => session,
            Ok(Err(error)) => return Err(not_ready(error.into())),
            Err(elapsed) => return Err(not_ready(elapsed.into())),
        };
        self.keep(&labels, container, Some(session));
        let stream = self.open(id).await?;
        match timeout(START_PATIENCE, agent_answers(stream)).await {
            Ok(Ok(epoch)) => Ok(epoch),
            Ok(Err(cause)) => Err(not_ready(cause)),
            Err(elapsed) => Err(not_ready(elapsed.into())),
        }
    }
}

fn internal(doing: String, cause: LinkError) -> RuntimeError {
    RuntimeError::Internal {
        doing,
        cause: cause.into(),
    }
}

/// What the agent is told first.
fn config(spec: &SandboxSpec, magic: Magic) -> AttachedConfig {
    AttachedConfig {
        magic,
        agent: AgentConfig {
            claim: Some(Claim {
                sandbox: spec.id,
                installation: spec.installation,
                keys: spec.keys.clone(),
                input_limits: spec.input_limits,
                idle_limit_ms: spec.idle_limit_ms,
                is_unclaimed: spec.is_unclaimed,
            }),
            limits: spec.limits.clone(),
            start: spec.start,
            ids: AgentIds {
                agent: AgentIds::WORKLOAD,
                workload: AgentIds::WORKLOAD,
            },
            exec_helper: EXEC_HELPER.into(),
            python: PYTHON.into(),
            fds: AgentFds {
                listener: -1,
                launcher: None,
                workload_cgroups: Vec::new(),
                oom_events: None,
            },
        },
    }
}

impl Maker for Inner {
    fn make(self: Arc<Self>, spec: ValidatedSpec) -> Reply<'static, Sandbox> {
        Box::pin(async move { self.make_here(spec.into_inner()).await })
    }

    fn take_down(self: Arc<Self>, id: SandboxId) -> Reply<'static, ()> {
        Box::pin(async move { self.remove(id).await })
    }
}
