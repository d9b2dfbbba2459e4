//! From the first instruction of process 1 to a served socket.

use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::Path;

use glovebox_protocol::agent_config::AgentConfig;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open,
    set_dumpable_behavior, umask,
};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{Agent, Options, StartError};
use crate::process::Spawner;

/// The folder of a sandbox that programs work in.
pub(crate) const WORKSPACE: &str = "/workspace";

/// Font caches that came with the root tree, and where matplotlib looks for its own.
const FONT_CACHES: &str = "/opt/glovebox/share/matplotlib";
const FONT_CACHE_HOME: &str = "/tmp/.config/matplotlib";

/// Longest configuration, in bytes.
const MAX_CONFIG: u64 = 1024 * 1024;

/// Why the agent could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The process could be read by others.
    #[error("hiding the agent's memory from other processes")]
    Dumpable(#[source] Errno),
    /// The configuration could not be read.
    #[error("reading the configuration from descriptor 0")]
    ReadConfig(#[source] std::io::Error),
    /// The configuration is malformed.
    #[error("parsing the configuration")]
    ParseConfig(#[source] serde_json::Error),
    /// A descriptor that the configuration names is not there.
    #[error("taking over the inherited descriptor {fd}")]
    Descriptor {
        /// Which one.
        fd: i32,
        /// Why it failed.
        #[source]
        cause: Errno,
    },
    /// The event loop could not be made.
    #[error("starting the event loop")]
    Runtime(#[source] std::io::Error),
    /// Signals cannot be caught.
    #[error("catching signals")]
    Signals(#[source] std::io::Error),
    /// The agent could not be put together.
    #[error("starting the agent")]
    Start(#[from] StartError),
    /// The inherited descriptor is no listening socket, or it failed.
    #[error("listening for requests")]
    Listen(#[source] std::io::Error),
    /// The standard streams could not be taken.
    #[error("taking over the standard streams")]
    Streams(#[source] Errno),
    /// Whoever holds the other ends of the standard streams is gone for good.
    #[error("the standard streams have ended")]
    StreamsEnded,
}

/// Runs the agent as process 1 of a sandbox. Returns only when it cannot go on.
#[must_use]
pub fn run() -> BootError {
    match boot() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn boot() -> Result<std::convert::Infallible, BootError> {
    // First of all: an exec makes a process readable again, and from here on others may live.
    hide()?;
    let config = read_config()?;
    let listener = std::os::unix::net::UnixListener::from(adopt(config.fds.listener)?);
    let oom_events = match config.fds.oom_events {
        Some(events) => Some(adopt(events.fd)?),
        None => None,
    };
    let launcher = config.fds.launcher.map(adopt).transpose()?;
    event_loop()?.block_on(async {
        let mut options = Options::new(WORKSPACE, Spawner::Sealed);
        options.oom_events = oom_events;
        options.launcher = launcher;
        let agent = bring_up(config, options).await?;
        listener.set_nonblocking(true).map_err(BootError::Listen)?;
        let listener = UnixListener::from_std(listener).map_err(BootError::Listen)?;
        Err(BootError::Listen(agent.serve(listener).await))
    })
}

/// Makes the process unreadable for others, and its files those of a workload.
pub(crate) fn hide() -> Result<(), BootError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(BootError::Dumpable)?;
    // What is made here belongs to the workload, which decides on its own rights from there.
    umask(Mode::from_raw_mode(0o022));
    Ok(())
}

/// The event loop that everything but the work on files runs on.
pub(crate) fn event_loop() -> Result<tokio::runtime::Runtime, BootError> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BootError::Runtime)
}

/// Puts the agent of a sealed place together, ready to serve.
pub(crate) async fn bring_up(config: AgentConfig, options: Options) -> Result<Agent, BootError> {
    // Caught, not ignored: what is ignored stays so in every program that is started, and Python
    // would not be interruptible.
    for kind in [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ] {
        drop(signal(kind).map_err(BootError::Signals)?);
    }
    let agent = Agent::new(config, options)?;
    agent.run_as_workload(link_font_caches).await;
    Ok(agent)
}

fn read_config() -> Result<AgentConfig, BootError> {
    let mut json = Vec::new();
    std::io::stdin()
        .lock()
        .take(MAX_CONFIG)
        .read_to_end(&mut json)
        .map_err(BootError::ReadConfig)?;
    serde_json::from_slice(&json).map_err(BootError::ParseConfig)
}

/// Takes a descriptor over that is known by its number only: as a copy of our own, made through
/// our own process descriptor, after which the number is closed. It is the one way to do so
/// without promising the compiler something about numbers that came from outside.
fn adopt(fd: i32) -> Result<OwnedFd, BootError> {
    let fault = |cause| BootError::Descriptor { fd, cause };
    let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(fault)?;
    let copy = pidfd_getfd(&own, fd, PidfdGetfdFlags::empty()).map_err(fault)?;
    // Left open it would only be one more descriptor for the exec helper to close.
    let _ = nix::unistd::close(fd);
    Ok(copy)
}

/// Gives matplotlib the font caches that were built with the root tree. Without them it builds
/// its own, which takes seconds and nothing else.
fn link_font_caches() {
    if fs_err::create_dir_all(FONT_CACHE_HOME).is_err() {
        return;
    }
    let Ok(caches) = fs_err::read_dir(FONT_CACHES) else {
        return;
    };
    for cache in caches.flatten() {
        let link = Path::new(FONT_CACHE_HOME).join(cache.file_name());
        // A cache that cannot be linked is built anew.
        let _ = fs_err::os::unix::fs::symlink(cache.path(), link);
    }
}
