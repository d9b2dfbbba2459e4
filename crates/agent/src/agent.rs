//! The agent: its parts, put together.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use glovebox_protocol::agent_config::{AgentConfig, Start};
use glovebox_protocol::sign::{Epoch, NoRandomness};
use rustix::io::Errno;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, SetOnce};
use tokio::time::{Instant, sleep_until};

use crate::activity::Activity;
use crate::files::{FileThreads, Hiring, ThreadsError};
use crate::http;
use crate::kernel::{KernelHost, Parts, Supply};
use crate::line::Line;
use crate::lock::Locked;
use crate::logs::Logs;
use crate::orders;
use crate::process::{Launcher, OomCounter, Reaper, Registry, Spawner, Workload};
use crate::shared::Shared;
use crate::words::{Words, to_standard_error};

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
    /// The agent's end of the line to the launcher, where there is one.
    pub launcher: Option<OwnedFd>,
    /// Where the time comes from.
    pub clock: Clock,
    /// Where the few sentences go that the agent has for people.
    pub words: Words,
}

impl Options {
    /// An agent with this workspace and the system's clock, without a counter of kills and
    /// without a launcher. Its sentences go to the standard error.
    #[must_use]
    pub fn new(workspace: impl Into<PathBuf>, spawner: Spawner) -> Self {
        Self {
            workspace: workspace.into(),
            spawner,
            oom_events: None,
            launcher: None,
            clock: Arc::new(|| {
                SystemTime::now()
                    .duration_since(SystemTime::UNIX_EPOCH)
                    .ok()
                    .and_then(|since| i64::try_from(since.as_millis()).ok())
                    .unwrap_or(0)
            }),
            words: to_standard_error(),
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
    /// It is nobody's, and nobody could claim it.
    #[error("the configuration names no sandbox, and there is no launcher that could")]
    Unclaimed,
    /// The line to the launcher cannot be listened to.
    #[error("listening to the launcher")]
    Launcher(#[source] std::io::Error),
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

impl Agent {
    /// Puts an agent together. Nothing is served yet. To be called within a Tokio runtime that
    /// has its time and input/output drivers enabled.
    ///
    /// # Errors
    /// When something that it cannot do without is missing.
    pub fn new(config: AgentConfig, options: Options) -> Result<Self, StartError> {
        if config.claim.is_none() && options.launcher.is_none() {
            return Err(StartError::Unclaimed);
        }
        let sealed = options.spawner.is_sealed();
        let epoch = Epoch::random()?;
        let fs_id = (sealed && config.ids.are_separate()).then_some(config.ids.workload);
        // A launcher gives the agent control groups of its own.
        let hiring = match options.launcher {
            Some(_) => Hiring::WithTheWork,
            None => Hiring::AtOnce,
        };
        let files = FileThreads::start(&options.workspace, fs_id, hiring)?;
        let line = options.launcher.map(Line::new).transpose();
        let line = line.map_err(StartError::Launcher)?.map(Arc::new);
        let (reaper, reaping) = Reaper::start(sealed).map_err(StartError::Reaper)?;
        let workload = Arc::new(Workload::new(
            Launcher::new(&config, options.spawner, &options.workspace),
            config.limits.clone(),
            Arc::clone(&reaper),
            OomCounter::new(options.oom_events),
            files.clone(),
        ));
        let supply = line
            .as_ref()
            .filter(|_| config.start == Start::Template)
            .map(|line| Arc::new(Supply::new(Arc::clone(line), Arc::clone(&workload))));
        let activity = Arc::new(Activity::new());
        let logs = Arc::new(Logs::new());
        let registry = Arc::new(Registry::new(Arc::clone(&activity), Arc::clone(&logs)));
        let kernel = Arc::new(KernelHost::new(Parts {
            workload: Arc::clone(&workload),
            registry: Arc::clone(&registry),
            activity: Arc::clone(&activity),
            python: config.python.clone(),
            supply: supply.clone(),
            words: Arc::clone(&options.words),
        }));
        let shared = Arc::new(Shared {
            config,
            epoch,
            clock: options.clock,
            words: options.words,
            claimed: SetOnce::new(),
            activity,
            line,
            supply,
            files,
            workload,
            registry,
            logs,
            kernel,
            started: Instant::now(),
            reaper,
            tasks: Locked::new(vec![reaping]),
        });
        begin(&shared);
        Ok(Self { shared })
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
        self.serve_connection_until(stream, std::future::pending())
            .await;
    }

    /// The same; when `over` comes, what is under way on it is brought to its end and nothing more
    /// begins.
    pub(crate) async fn serve_connection_until<S>(&self, stream: S, over: impl Future<Output = ()>)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        http::serve(Arc::clone(&self.shared), stream, over).await;
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

/// Does what needs no request: belongs to somebody, listens to the launcher, takes the kernel that
/// comes unasked.
fn begin(shared: &Arc<Shared>) {
    if let Some(claim) = shared.config.claim.clone() {
        shared.claim(claim);
    }
    if shared.supply.is_some() {
        shared.prepare_kernel();
    }
    if let Some(line) = &shared.line {
        let listening = orders::listen(Arc::clone(line), Arc::downgrade(shared));
        shared.keep(tokio::spawn(listening));
    }
}

/// Whether a connection could not be taken for want of something that may come back.
fn is_passing(error: &std::io::Error) -> bool {
    let fatal = [Errno::BADF, Errno::INVAL, Errno::NOTSOCK, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| !fatal.contains(&errno))
}
