//! The agent: its parts, put together.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::health::{Health, Status};
use glovebox_protocol::sign::{Epoch, NoRandomness, Verifier};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use tokio::time::sleep_until;

use crate::error::ApiError;
use crate::files::{FileThreads, Inputs, ThreadsError};
use crate::http;
use crate::kernel::KernelHost;
use crate::lock::Locked;
use crate::process::{Launcher, OomCounter, Reaper, Registry, Spawner, Workload};

/// Most connections at once. Only the runtime can reach the socket, and it needs a handful.
const MAX_CONNECTIONS: usize = 64;

/// How long no connection is taken after descriptors or memory ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Tells the time, in milliseconds since 1970 (UTC).
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What an agent needs to know of its surroundings that its configuration does not say.
pub struct Options {
    /// The folder that programs work in.
    pub workspace: PathBuf,
    /// How processes are started.
    pub spawner: Spawner,
    /// The file that counts kills for lack of memory, where there is one.
    pub oom_events: Option<OwnedFd>,
    /// Where the time comes from.
    pub clock: Clock,
}

impl Options {
    /// An agent with this workspace, the system's clock and no counter of kills.
    #[must_use]
    pub fn new(workspace: impl Into<PathBuf>, spawner: Spawner) -> Self {
        Self {
            workspace: workspace.into(),
            spawner,
            oom_events: None,
            clock: Arc::new(|| {
                SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .ok()
                    .and_then(|since| i64::try_from(since.as_millis()).ok())
                    .unwrap_or(0)
            }),
        }
    }
}

/// Why an agent could not be made.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There are no random bytes for the boot epoch.
    #[error("drawing a boot epoch")]
    Epoch(#[from] NoRandomness),
    /// The threads that touch files could not be made ready.
    #[error("preparing access to files")]
    Files(#[from] ThreadsError),
    /// It is nobody's.
    #[error("the configuration names no sandbox")]
    Unclaimed,
    /// Ended children cannot be watched for.
    #[error("watching for ended processes")]
    Reaper(#[source] std::io::Error),
}

/// An agent. Cheap to clone; the last clone ends everything that it started.
///
/// ```no_run
/// use glovebox_agent::{Agent, Options, Spawner};
/// # async fn example(config: glovebox_protocol::agent_config::AgentConfig) -> Result<(), Box<dyn std::error::Error>> {
/// // Outside a box, with a folder for a workspace and no isolation at all:
/// let spawner = Spawner::Direct { env: Default::default() };
/// let agent = Agent::new(config, Options::new("/tmp/workspace", spawner))?;
/// let listener = tokio::net::UnixListener::bind("/tmp/agent.sock")?;
/// let error = agent.serve(listener).await;
/// # Err(error.into())
/// # }
/// ```
#[derive(Clone)]
pub struct Agent {
    shared: Arc<Shared>,
}

/// What the handlers of requests share.
pub(crate) struct Shared {
    pub(crate) config: AgentConfig,
    pub(crate) sandbox: glovebox_protocol::ids::SandboxId,
    pub(crate) epoch: Epoch,
    pub(crate) clock: Clock,
    pub(crate) verifier: Locked<Verifier>,
    pub(crate) files: FileThreads,
    pub(crate) inputs: Arc<Inputs>,
    pub(crate) workload: Arc<Workload>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) kernel: Arc<KernelHost>,
    started: Instant,
    active: Locked<Instant>,
    reaper: Arc<Reaper>,
    reaping: AbortHandle,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.reaper.kill_all();
        self.reaping.abort();
    }
}

impl Agent {
    /// Puts an agent together. Nothing is served yet. To be called within a Tokio runtime that
    /// has its time and input/output drivers enabled.
    ///
    /// # Errors
    /// When something that it cannot do without is missing.
    pub fn new(config: AgentConfig, options: Options) -> Result<Self, StartError> {
        let sealed = options.spawner.is_sealed();
        let epoch = Epoch::random()?;
        let fs_id = (sealed && config.ids.are_separate()).then_some(config.ids.workload);
        let files = FileThreads::start(&options.workspace, fs_id)?;
        let (reaper, reaping) = Reaper::start(sealed).map_err(StartError::Reaper)?;
        let launcher = Launcher::new(&config, options.spawner, &options.workspace);
        let workload = Arc::new(Workload::new(
            launcher,
            config.limits.clone(),
            Arc::clone(&reaper),
            OomCounter::new(options.oom_events),
            files.clone(),
        ));
        let claim = config.claim.clone().ok_or(StartError::Unclaimed)?;
        let verifier = Verifier::new(
            claim.installation,
            claim.sandbox.to_string(),
            epoch,
            claim.keys,
        );
        let registry: Arc<Registry> = Arc::default();
        let kernel = Arc::new(KernelHost::new(
            Arc::clone(&workload),
            Arc::clone(&registry),
            config.python.clone(),
        ));
        let now = Instant::now();
        Ok(Self {
            shared: Arc::new(Shared {
                epoch,
                clock: options.clock,
                verifier: Locked::new(verifier),
                files,
                inputs: Arc::new(Inputs::new(claim.input_limits)),
                workload,
                registry,
                kernel,
                started: now,
                active: Locked::new(now),
                reaper,
                reaping,
                sandbox: claim.sandbox,
                config,
            }),
        })
    }

    /// Serves every connection of a listening socket. Returns only when the socket fails.
    pub async fn serve(&self, listener: UnixListener) -> std::io::Error {
        let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                return std::io::Error::other("the agent takes no connections any more");
            };
            match listener.accept().await {
                Ok((stream, _)) => {
                    let agent = self.clone();
                    tokio::spawn(async move {
                        agent.serve_connection(stream).await;
                        drop(place);
                    });
                }
                Err(error) if is_passing(&error) => {
                    drop(place);
                    sleep_until(tokio::time::Instant::now() + ACCEPT_PAUSE).await;
                }
                Err(error) => return error,
            }
        }
    }

    /// Serves one connection until it is closed. What was started on it and streams its output
    /// on it ends with it.
    pub async fn serve_connection<S>(&self, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        http::serve(Arc::clone(&self.shared), stream).await;
    }

    /// Runs `work` on a thread that has the workload's rights on files.
    pub(crate) async fn run_as_workload(&self, work: impl FnOnce() + Send + 'static) {
        // Whether it worked is the caller's own matter.
        let _ = self.shared.files.run(move |_| work()).await;
    }

    /// Kills everything that runs in the sandbox and returns when nothing is left.
    pub async fn end_workload(&self) -> u32 {
        self.shared.workload.end().await
    }
}

/// Whether a connection could not be taken for want of something that may come back.
fn is_passing(error: &std::io::Error) -> bool {
    let fatal = [Errno::BADF, Errno::INVAL, Errno::NOTSOCK, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| !fatal.contains(&errno))
}

impl Shared {
    /// Notes that something was asked for that counts as use.
    pub(crate) fn touch(&self) {
        self.active.with(|active| *active = Instant::now());
    }

    /// When something was last asked for, or ran.
    fn last_active(&self) -> Instant {
        let asked = self.active.with(|active| *active);
        self.registry
            .last_active()
            .map_or(asked, |ran| ran.max(asked))
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            protocol: glovebox_protocol::PROTOCOL_VERSION,
            epoch: self.epoch,
        }
    }

    pub(crate) async fn status(&self) -> Result<Status, ApiError> {
        let usage = self
            .files
            .run(|workspace| workspace.usage())
            .await?
            .map_err(|error| ApiError::internal("asking how full the workspace is", &error))?;
        let blocks = usage.f_blocks.saturating_sub(usage.f_bfree);
        let used_bytes = blocks.saturating_mul(usage.f_frsize);
        let used_inodes = usage.f_files.saturating_sub(usage.f_ffree);
        let milliseconds = |since: Instant| u64::try_from(since.elapsed().as_millis()).unwrap_or(0);
        Ok(Status {
            sandbox_id: self.sandbox,
            uptime_ms: milliseconds(self.started),
            idle_ms: milliseconds(self.last_active()),
            input_bytes: self.inputs.total_bytes(),
            workspace_used_bytes: used_bytes,
            workspace_used_inodes: used_inodes,
            oom_kills: self.workload.oom_kills(),
            processes: self.workload.count().await,
        })
    }
}
