//! A sandbox from the request until its agent answers.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use glovebox_box::control::{BoxFacts, BoxKind, BoxSpec, FromLauncher, ToLauncher};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::sign::Epoch;
use glovebox_runtime::{
    AgentStream, Maker, Reply, RuntimeError, Sandbox, SandboxState, ValidatedSpec,
};
use tokio::net::UnixStream;
use tokio::sync::RwLock;
use tokio::time::timeout;

use super::failure::from_link;
use super::launch::Launch;
use super::table::Table;
use crate::link::{Link, LinkError};

/// How long an agent may take to its first answer.
const START_PATIENCE: Duration = Duration::from_secs(90);

/// What a call needs that may outlive whoever made it.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) launch: Launch,
    pub(super) link: RwLock<Arc<Link>>,
    pub(super) table: Table,
    pub(super) layers: Vec<String>,
    pub(super) installation: InstallationId,
}

impl Inner {
    async fn make_here(&self, spec: ValidatedSpec) -> Result<Sandbox, RuntimeError> {
        let spec = spec.into_inner();
        if spec.installation != self.installation {
            return Err(RuntimeError::Invalid(
                format!(
                    "the sandbox is of installation {}, this runtime of {}",
                    spec.installation, self.installation
                )
                .into(),
            ));
        }
        if let Some(image) = &spec.image {
            let image = glovebox_protocol::file::escape_for_display(image.as_bytes());
            return Err(RuntimeError::Invalid(
                format!("`image` is {image}; the embedded runtime makes sandboxes of its own root tree and has no images").into(),
            ));
        }
        let id = spec.id;
        self.revive().await?;
        self.table.reserve(id, spec.hard_deadline_ms)?;
        let asked = BoxSpec {
            sandbox: id,
            kind: BoxKind {
                trust_domain: spec.trust_domain,
                start: spec.start,
                limits: spec.limits,
                layers: self.layers.clone(),
            },
            keys: spec.keys,
            input_limits: spec.input_limits,
            idle_limit_ms: spec.idle_limit_ms,
            is_unclaimed: spec.is_unclaimed,
            hard_deadline_ms: spec.hard_deadline_ms,
        };
        let (was_ready, said) = match self.ask_for_box(asked).await {
            Ok(facts) => {
                let known = (facts.was_ready, facts.agent_epoch);
                self.table.is_made(id, facts);
                known
            }
            Err(error) => {
                self.table.forget(id);
                return Err(from_link(&format!("making the sandbox {id}"), error));
            }
        };
        // The kernel in a box that was ready took code before the box was given away, so its agent
        // runs; and the agent heard whose box it is before it looks at its first request.
        let agent_epoch = match said {
            Some(epoch) if was_ready => epoch,
            _ => self.until_ready(id).await?,
        };
        Ok(Sandbox {
            id,
            state: SandboxState::Running,
            hard_deadline_ms: spec.hard_deadline_ms,
            agent_epoch: Some(agent_epoch),
        })
    }

    /// Takes over the sandboxes that a launcher has already.
    pub(super) async fn adopt(&self) -> Result<(), RuntimeError> {
        let doing = "asking the launcher for its sandboxes";
        match self.link().await.ask(|id| ToLauncher::List { id }).await {
            Ok(FromLauncher::Listed { boxes, .. }) => {
                boxes.into_iter().for_each(|facts| self.table.adopt(facts));
                Ok(())
            }
            Ok(_) => Err(from_link(doing, LinkError::Mismatched)),
            Err(error) => Err(from_link(doing, error)),
        }
    }

    async fn ask_for_box(&self, spec: BoxSpec) -> Result<BoxFacts, LinkError> {
        let link = self.link().await;
        let answer = link
            .ask(|id| ToLauncher::Create {
                id,
                spec: Box::new(spec),
            })
            .await?;
        match answer {
            FromLauncher::Created { facts, .. } => Ok(facts),
            _ => Err(LinkError::Mismatched),
        }
    }

    /// Waits for the agent's first answer, which has its boot epoch; a sandbox that gives none is
    /// removed again.
    async fn until_ready(&self, id: SandboxId) -> Result<Epoch, RuntimeError> {
        let answered = async {
            let stream = self.open(id).await?;
            match timeout(START_PATIENCE, glovebox_runtime::agent_answers(stream)).await {
                Ok(Ok(epoch)) => Ok(epoch),
                Ok(Err(cause)) => Err(self.not_ready(id, cause)),
                Err(elapsed) => Err(self.not_ready(id, elapsed.into())),
            }
        };
        let error = match answered.await {
            Ok(epoch) => return Ok(epoch),
            Err(error) => error,
        };
        // What went wrong first is what has to be known; a sandbox that cannot be removed now
        // goes with the launcher.
        let _ = self.remove(id).await;
        Err(error)
    }

    fn not_ready(&self, id: SandboxId, cause: glovebox_runtime::Cause) -> RuntimeError {
        RuntimeError::Unavailable {
            doing: match self.table.end_reason(id) {
                Some(reason) => format!("waiting for the agent of sandbox {id}: {reason}"),
                None => format!("waiting for the agent of sandbox {id}"),
            },
            fix: None,
            cause,
        }
    }

    pub(super) async fn open(&self, id: SandboxId) -> Result<Box<dyn AgentStream>, RuntimeError> {
        let socket = self.table.socket(id)?;
        let stream = UnixStream::connect(&socket)
            .await
            .map_err(|source| match source.kind() {
                // It has ended a moment ago; the launcher is about to say so.
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => RuntimeError::NotFound {
                    id,
                    reason: Some("it has ended".into()),
                },
                _ => RuntimeError::Unavailable {
                    doing: format!("connecting to the agent of sandbox {id}"),
                    fix: None,
                    cause: source.into(),
                },
            })?;
        Ok(Box::new(stream))
    }

    pub(super) async fn remove(&self, id: SandboxId) -> Result<(), RuntimeError> {
        self.end("removing", id).await?;
        self.table.forget(id);
        Ok(())
    }

    pub(super) async fn stop(&self, id: SandboxId) -> Result<(), RuntimeError> {
        if self.table.is_running(id) {
            self.end("stopping", id).await?;
            self.table.mark_ended(id, "it was stopped");
        }
        Ok(())
    }

    async fn end(&self, doing: &str, sandbox: SandboxId) -> Result<(), RuntimeError> {
        let link = self.link().await;
        link.ask(|id| ToLauncher::Remove { id, sandbox })
            .await
            .map(drop)
            .map_err(|error| from_link(&format!("{doing} the sandbox {sandbox}"), error))
    }
}

impl Maker for Inner {
    fn make(self: Arc<Self>, spec: ValidatedSpec) -> Reply<'static, Sandbox> {
        Box::pin(async move { self.make_here(spec).await })
    }

    fn take_down(self: Arc<Self>, id: SandboxId) -> Reply<'static, ()> {
        Box::pin(async move { self.remove(id).await })
    }
}
