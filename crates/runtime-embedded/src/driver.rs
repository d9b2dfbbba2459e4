//! The driver: [`Runtime`] on top of a launcher.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use glovebox_box::control::{
    BoxEnd, BoxFacts, BoxKind, BoxSpec, FaultKind, FromLauncher, LauncherConfig, PodFacts,
    ToLauncher,
};
use glovebox_box::weakness::Weakness;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_runtime::{
    AgentStream, Capabilities, Capability, Description, Reply, Runtime, RuntimeError, Sandbox,
    SandboxState, ValidatedSpec,
};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::link::{Link, LinkError, Watcher, lock};

/// How long an agent may take to its first answer.
const START_PATIENCE: Duration = Duration::from_secs(90);

/// What an embedded runtime needs to know.
#[derive(Debug, Clone)]
pub struct Options {
    /// The launcher program.
    pub launcher: PathBuf,
    /// The data folder, which holds the layers.
    pub data: PathBuf,
    /// A folder for sockets, on a path short enough for them; made if absent.
    pub run: PathBuf,
    /// Layers of a box's root, topmost first, relative to the data folder.
    pub layers: Vec<String>,
    /// Which installation the boxes belong to.
    pub installation: InstallationId,
    /// The first host id that root gives to the pod.
    pub root_range_start: u32,
    /// Protections whose lack was accepted by name.
    pub accept_weaker: Vec<Weakness>,
}

#[derive(Debug)]
struct Entry {
    /// Where the agent listens; known once the box is made.
    socket: Option<PathBuf>,
    state: SandboxState,
    hard_deadline_ms: Option<i64>,
}

impl Entry {
    fn view(&self, id: SandboxId) -> Sandbox {
        Sandbox {
            id,
            state: self.state.clone(),
            hard_deadline_ms: self.hard_deadline_ms,
        }
    }
}

type Table = Arc<Mutex<HashMap<SandboxId, Entry>>>;

/// Sandboxes on this machine. When it is dropped, or its process is killed, every sandbox ends.
#[derive(Debug)]
pub struct EmbeddedRuntime {
    inner: Arc<Inner>,
    facts: PodFacts,
}

/// What a call needs that may outlive whoever made it.
#[derive(Debug)]
struct Inner {
    link: Link,
    table: Table,
    layers: Vec<String>,
    installation: InstallationId,
}

impl EmbeddedRuntime {
    /// Starts the launcher.
    ///
    /// # Errors
    /// [`RuntimeError::Unsupported`] with the name of the protection that cannot be had here;
    /// [`RuntimeError::Unavailable`] for anything else.
    pub async fn start(options: Options) -> Result<Self, RuntimeError> {
        let run = run_folder_below(&options.run).map_err(|source| RuntimeError::Unavailable {
            doing: format!(
                "making a folder for sockets below {}",
                options.run.display()
            ),
            fix: Some("choose a folder of yours with GLOVEBOX_RUN".into()),
            cause: source.into(),
        })?;
        let config = LauncherConfig {
            data: options.data,
            run,
            installation: options.installation,
            root_range_start: options.root_range_start,
            accept_weaker: options.accept_weaker,
        };
        let table = Table::default();
        let watcher = TableWatcher(Arc::clone(&table));
        let (link, facts) = Link::start(&options.launcher, &config, watcher)
            .await
            .map_err(|error| from_link("starting the launcher of the embedded runtime", error))?;
        Ok(Self {
            inner: Arc::new(Inner {
                link,
                table,
                layers: options.layers,
                installation: options.installation,
            }),
            facts,
        })
    }

    /// What is true of every box made here.
    #[must_use]
    pub const fn facts(&self) -> &PodFacts {
        &self.facts
    }

    /// Ends every sandbox and the launcher, and waits until nothing is left of them.
    ///
    /// # Errors
    /// When the launcher could not clean up.
    pub async fn shut_down(&self) -> Result<(), RuntimeError> {
        let doing = "ending the launcher of the embedded runtime";
        let unavailable = |cause: glovebox_runtime::Cause| RuntimeError::Unavailable {
            doing: doing.into(),
            fix: None,
            cause,
        };
        let status = self
            .inner
            .link
            .close()
            .await
            .map_err(|source| unavailable(source.into()))?;
        if status.success() {
            Ok(())
        } else {
            Err(unavailable(format!("it ended with {status}").into()))
        }
    }
}

impl Inner {
    async fn make(&self, spec: ValidatedSpec) -> Result<Sandbox, RuntimeError> {
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
        let id = spec.id;
        self.reserve(id, spec.hard_deadline_ms)?;
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
            hard_deadline_ms: spec.hard_deadline_ms,
        };
        match self.ask_for_box(asked).await {
            Ok(facts) => {
                if let Some(entry) = lock(&self.table).get_mut(&id) {
                    entry.socket = Some(facts.socket);
                }
            }
            Err(error) => {
                lock(&self.table).remove(&id);
                return Err(from_link(&format!("making the sandbox {id}"), error));
            }
        }
        self.until_ready(id).await?;
        Ok(Sandbox {
            id,
            state: SandboxState::Running,
            hard_deadline_ms: spec.hard_deadline_ms,
        })
    }

    /// Takes the id before the launcher is asked, so that a box that ends at once is not missed.
    fn reserve(&self, id: SandboxId, hard_deadline_ms: Option<i64>) -> Result<(), RuntimeError> {
        use std::collections::hash_map::Entry as Slot;
        match lock(&self.table).entry(id) {
            Slot::Occupied(_) => Err(RuntimeError::AlreadyExists { id }),
            Slot::Vacant(slot) => {
                slot.insert(Entry {
                    socket: None,
                    state: SandboxState::Running,
                    hard_deadline_ms,
                });
                Ok(())
            }
        }
    }

    async fn ask_for_box(&self, spec: BoxSpec) -> Result<BoxFacts, LinkError> {
        let answer = self
            .link
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

    /// Waits for the agent's first answer; a sandbox that gives none is removed again.
    async fn until_ready(&self, id: SandboxId) -> Result<(), RuntimeError> {
        let answered = async {
            let stream = self.open(id).await?;
            match timeout(START_PATIENCE, glovebox_runtime::agent_answers(stream)).await {
                Ok(Ok(())) => Ok(()),
                Ok(Err(cause)) => Err(self.not_ready(id, cause)),
                Err(elapsed) => Err(self.not_ready(id, elapsed.into())),
            }
        };
        let Err(error) = answered.await else {
            return Ok(());
        };
        // What went wrong first is what has to be known; a sandbox that cannot be removed now
        // goes with the launcher.
        let _ = self.take_down(id).await;
        Err(error)
    }

    fn not_ready(&self, id: SandboxId, cause: glovebox_runtime::Cause) -> RuntimeError {
        RuntimeError::Unavailable {
            doing: match self.end_reason(id) {
                Some(reason) => format!("waiting for the agent of sandbox {id}: {reason}"),
                None => format!("waiting for the agent of sandbox {id}"),
            },
            fix: None,
            cause,
        }
    }

    fn end_reason(&self, id: SandboxId) -> Option<String> {
        match &lock(&self.table).get(&id)?.state {
            SandboxState::Ended { reason } => Some(reason.clone()),
            SandboxState::Running => None,
        }
    }

    async fn open(&self, id: SandboxId) -> Result<Box<dyn AgentStream>, RuntimeError> {
        let socket = match lock(&self.table).get(&id) {
            Some(entry) => match &entry.state {
                SandboxState::Running => entry.socket.clone().ok_or(None),
                SandboxState::Ended { reason } => Err(Some(reason.clone())),
            },
            None => Err(None),
        }
        .map_err(|reason| RuntimeError::NotFound { id, reason })?;
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

    async fn take_down(&self, id: SandboxId) -> Result<(), RuntimeError> {
        self.end("removing", id).await?;
        lock(&self.table).remove(&id);
        Ok(())
    }

    async fn stop(&self, id: SandboxId) -> Result<(), RuntimeError> {
        let running = lock(&self.table)
            .get(&id)
            .is_some_and(|entry| entry.state == SandboxState::Running);
        if running {
            self.end("stopping", id).await?;
            mark_ended(&self.table, id, "it was stopped");
        }
        Ok(())
    }

    async fn end(&self, doing: &str, sandbox: SandboxId) -> Result<(), RuntimeError> {
        self.link
            .ask(|id| ToLauncher::Remove { id, sandbox })
            .await
            .map(drop)
            .map_err(|error| from_link(&format!("{doing} the sandbox {sandbox}"), error))
    }
}

/// A sandbox that is being made. Dropped before that has ended, it sees to it that the sandbox
/// does not stay.
struct Making {
    inner: Arc<Inner>,
    id: SandboxId,
    task: Option<JoinHandle<Result<Sandbox, RuntimeError>>>,
}

impl Making {
    fn start(inner: Arc<Inner>, spec: ValidatedSpec) -> Self {
        let id = spec.get().id;
        let made = Arc::clone(&inner);
        let task = tokio::spawn(async move { made.make(spec).await });
        Self {
            inner,
            id,
            task: Some(task),
        }
    }

    async fn ended(mut self) -> Result<Sandbox, RuntimeError> {
        let Some(task) = self.task.as_mut() else {
            return Err(RuntimeError::NotFound {
                id: self.id,
                reason: None,
            });
        };
        let result = task.await;
        self.task = None;
        result.unwrap_or_else(|error| {
            Err(RuntimeError::Internal {
                doing: format!("making the sandbox {}", self.id),
                cause: error.into(),
            })
        })
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let Some(task) = self.task.take() else {
            return;
        };
        // Without an event loop the program is ending, and the launcher with it.
        let Ok(event_loop) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (inner, id) = (Arc::clone(&self.inner), self.id);
        event_loop.spawn(async move {
            if matches!(task.await, Ok(Ok(_))) {
                // If it cannot be removed now, it goes with the launcher.
                let _ = inner.take_down(id).await;
            }
        });
    }
}

impl Runtime for EmbeddedRuntime {
    fn describe(&self) -> Description {
        use Capability as C;
        let lacks = |weakness| self.facts.weaker.contains(&weakness);
        let memory = !lacks(Weakness::MemoryLimit) && !lacks(Weakness::SwapLimit);
        let conditional = [
            (C::MemoryLimit, memory),
            (C::CpuLimit, !lacks(Weakness::CpuLimit)),
            (C::ProcessLimit, !lacks(Weakness::ProcessLimit)),
            (C::SeparateIds, self.facts.two_ids),
        ];
        let always = [
            C::WorkspaceBytes,
            C::WorkspaceInodes,
            C::NoNetwork,
            C::EndsSingleExecution,
        ];
        Description {
            name: "embedded",
            capabilities: conditional
                .into_iter()
                .filter_map(|(capability, holds)| holds.then_some(capability))
                .chain(always)
                .collect::<Capabilities>(),
        }
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        Box::pin(Making::start(Arc::clone(&self.inner), spec).ended())
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        Box::pin(async move {
            lock(&self.inner.table)
                .get(&id)
                .map(|entry| entry.view(id))
                .ok_or(RuntimeError::NotFound { id, reason: None })
        })
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        Box::pin(async move {
            let table = lock(&self.inner.table);
            Ok(table.iter().map(|(id, entry)| entry.view(*id)).collect())
        })
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        Box::pin(self.inner.open(id))
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.inner.stop(id))
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(self.inner.take_down(id))
    }
}

struct TableWatcher(Table);

impl Watcher for TableWatcher {
    fn ended(&self, sandbox: SandboxId, end: &BoxEnd) {
        mark_ended(&self.0, sandbox, &end.to_string());
    }

    fn launcher_gone(&self) {
        let ids: Vec<_> = lock(&self.0).keys().copied().collect();
        for id in ids {
            mark_ended(&self.0, id, "the launcher has ended");
        }
    }
}

fn mark_ended(table: &Table, id: SandboxId, why: &str) {
    if let Some(entry) = lock(table).get_mut(&id)
        && entry.state == SandboxState::Running
    {
        entry.state = SandboxState::Ended { reason: why.into() };
    }
}

/// Where one launcher is to make its folder. The folder above it must be ours alone: whoever could
/// rename the launcher's could put a socket of their own in its place.
fn run_folder_below(base: &Path) -> std::io::Result<PathBuf> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o711).create(base)?;
    let metadata = fs_err::symlink_metadata(base)?;
    let is_ours = metadata.is_dir()
        && metadata.uid() == rustix::process::geteuid().as_raw()
        && metadata.mode() & 0o022 == 0;
    if !is_ours {
        return Err(std::io::Error::other(
            "others can write to it, or it is no folder of yours",
        ));
    }
    // The id's random half is enough, and leaves room for socket names.
    let id = SandboxId::new().to_string();
    Ok(base.join(id.rsplit('-').next().unwrap_or(&id)))
}

fn from_link(doing: &str, error: LinkError) -> RuntimeError {
    match error {
        LinkError::Fault(fault) => {
            let fix = fault.fix.clone();
            match &fault.kind {
                FaultKind::Weaker { weakness } => RuntimeError::Unsupported {
                    what: weakness.name().into(),
                    fix,
                    cause: Some(Box::new(fault)),
                },
                FaultKind::Exhausted => RuntimeError::Exhausted(Box::new(fault)),
                FaultKind::Invalid => RuntimeError::Invalid(Box::new(fault)),
                FaultKind::Failed => RuntimeError::Unavailable {
                    doing: doing.into(),
                    fix,
                    cause: Box::new(fault),
                },
            }
        }
        other => RuntimeError::Unavailable {
            doing: doing.into(),
            fix: None,
            cause: Box::new(other),
        },
    }
}
