//! The driver: [`Runtime`] on top of a container engine.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_runtime::{
    AgentStream, Capability, Description, Examined, Reply, Runtime, RuntimeError, Sandbox,
    SandboxState, ValidatedSpec, make_to_the_end,
};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::engine::{Engine, EngineError};
use crate::image;
use crate::keeper::end_of;
use crate::owner::Owner;
use crate::table::Table;

/// How long a stream may take: long enough for the engine to come back from a restart.
const STREAM_PATIENCE: Duration = Duration::from_secs(30);

/// What an engine runtime needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The engine's socket.
    pub socket: PathBuf,
    /// The image that sandboxes are made of which name none, by name or id.
    pub image: String,
    /// Another runtime of the engine's for containers, such as `runsc`.
    pub runtime: Option<String>,
    /// Which installation the sandboxes belong to.
    pub installation: InstallationId,
    /// A folder for the lock that says who drives this installation's sandboxes; made if absent.
    pub state: PathBuf,
    /// How long one call of the engine may take.
    pub patience: Duration,
}

/// Sandboxes in containers. When it is dropped, or its process is killed, they go on; the next
/// one with the same installation finds them again.
#[derive(Debug)]
pub struct EngineRuntime {
    inner: Arc<Inner>,
    owner: Mutex<Option<Owner>>,
}

/// What a call needs that may outlive whoever made it.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) table: Table,
    /// By its id.
    pub(crate) image: String,
    pub(crate) runtime: Option<String>,
    pub(crate) installation: InstallationId,
}

impl EngineRuntime {
    /// Takes up an engine, and every sandbox of this installation that it has.
    ///
    /// # Errors
    /// [`RuntimeError::Unavailable`] when the engine does not answer, has no such image, or
    /// another process drives the same sandboxes; [`RuntimeError::Unsupported`] when the image
    /// holds another agent.
    pub async fn start(options: Options) -> Result<Self, RuntimeError> {
        let owner = Owner::take(&options.state, options.installation)?;
        let doing = format!(
            "reaching the container engine at {}",
            options.socket.display()
        );
        let engine = Engine::connect(&options.socket, options.patience).await;
        let engine = engine.map_err(|error| error.while_doing(doing))?;
        let image = image::resolve(&engine, &options.image).await?;
        let inner = Arc::new(Inner {
            engine,
            table: Table::default(),
            image,
            runtime: options.runtime,
            installation: options.installation,
        });
        inner.adopt_all().await?;
        Ok(Self {
            inner,
            owner: Mutex::new(Some(owner)),
        })
    }

    /// Lets go of every sandbox, as the end of this process would: they go on, and the next
    /// driver of this installation takes them up. This one knows of none any more.
    pub fn detach(&self) {
        self.inner.table.abandon();
        self.owner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }
}

impl Drop for EngineRuntime {
    fn drop(&mut self) {
        self.detach();
    }
}

impl Inner {
    pub(crate) async fn open(&self, id: SandboxId) -> Result<Box<dyn AgentStream>, RuntimeError> {
        let unavailable = |cause: glovebox_runtime::Cause| RuntimeError::Unavailable {
            doing: format!("opening a stream to the agent of sandbox {id}"),
            fix: None,
            cause,
        };
        let streams = self.table.streams(id)?;
        let (wanted, opened) = oneshot::channel();
        let opening = async {
            if streams.send(wanted).await.is_err() {
                return None;
            }
            opened.await.ok()
        };
        match timeout(STREAM_PATIENCE, opening).await {
            Ok(Some(Ok(stream))) => Ok(Box::new(stream)),
            Ok(Some(Err(error))) => Err(unavailable(error.into())),
            Ok(None) => match self.table.end_reason(id) {
                Some(reason) => Err(RuntimeError::NotFound {
                    id,
                    reason: Some(reason),
                }),
                None => Err(unavailable("the session with the agent was cut".into())),
            },
            Err(elapsed) => Err(unavailable(elapsed.into())),
        }
    }

    /// Ends a sandbox's processes. Its container stays until it is removed.
    pub(crate) async fn end(&self, id: SandboxId, reason: &str) -> Result<(), RuntimeError> {
        let Some(container) = self.table.container(id) else {
            return Ok(());
        };
        if self.table.end_reason(id).is_some() {
            return Ok(());
        }
        self.table.let_go(id).await;
        let killed = self.engine.kill(&container).await;
        killed.map_err(|error| error.while_doing(format!("stopping the sandbox {id}")))?;
        self.table.mark_ended(id, reason);
        Ok(())
    }

    pub(crate) async fn remove(&self, id: SandboxId) -> Result<(), RuntimeError> {
        self.table.let_go(id).await;
        if let Some(container) = self.table.container(id) {
            let removed = self.engine.remove(&container).await;
            removed.map_err(|error| error.while_doing(format!("removing the sandbox {id}")))?;
        }
        self.table.forget(id);
        Ok(())
    }

    async fn look(&self, id: SandboxId) -> Result<Sandbox, RuntimeError> {
        let unknown = || RuntimeError::NotFound { id, reason: None };
        let known = self.table.view(id).ok_or_else(unknown)?;
        if known.state == SandboxState::Running
            && let Some(container) = self.table.container(id)
        {
            match self.engine.inspect(&container).await {
                Ok(found) => {
                    if let Some(reason) = end_of(&found).filter(|_| self.table.streams(id).is_ok())
                    {
                        self.table.mark_ended(id, &reason);
                    }
                }
                Err(EngineError::Missing(_)) => {
                    self.table.mark_ended(id, "it was removed from outside");
                }
                Err(error) => {
                    return Err(error.while_doing(format!("looking at the sandbox {id}")));
                }
            }
        }
        self.table.view(id).ok_or_else(unknown)
    }
}

impl Runtime for EngineRuntime {
    fn describe(&self) -> Description {
        use Capability as C;
        Description {
            name: "docker",
            capabilities: [
                C::MemoryLimit,
                C::CpuLimit,
                C::ProcessLimit,
                C::WorkspaceBytes,
                C::WorkspaceInodes,
                C::NoNetwork,
                C::KeepsExecutions,
            ]
            .into_iter()
            .collect(),
        }
    }

    fn has_images(&self) -> bool {
        true
    }

    fn examine<'a>(&'a self, images: &'a [String]) -> Reply<'a, Examined> {
        Box::pin(self.inner.examine(images))
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        make_to_the_end(Arc::clone(&self.inner), spec)
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        Box::pin(self.inner.look(id))
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        Box::pin(async move {
            // The engine is asked, so that one that is away is not taken for an empty one.
            self.inner.containers().await?;
            Ok(self.inner.table.view_all())
        })
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        Box::pin(self.inner.open(id))
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.inner.end(id, "it was stopped"))
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.inner.remove(id))
    }
}
