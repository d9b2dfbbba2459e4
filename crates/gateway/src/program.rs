//! The program: reads its environment, starts a runtime, serves until it is told to stop.

mod docker;
mod embedded;
mod secrets;

use std::ffi::OsString;
use std::io::Write as _;
use std::os::fd::AsFd as _;
use std::sync::Arc;

use glovebox_runtime::{Runtime, RuntimeError};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::net::unix::pipe;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::config::{self, Config, Fault, Listen, Machine, RuntimeKind, SecretsError, Transport};
use crate::error::chain;
use crate::folder::{self, FolderError, Identity, StateFolder};
use crate::{
    Fingerprint, Gateway, Journal, Listener, Place, Rules, Surroundings, listening, system_clock,
};

/// How long before its hard deadline a sandbox is shown as ending, in milliseconds.
const ENDING_WINDOW_MS: u64 = 60_000;

/// Why the gateway did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The environment is not as it has to be.
    #[error("{}", lines(.0))]
    Config(Vec<Fault>),
    /// This machine does not tell what it is.
    #[error("looking at this machine's network interfaces")]
    Machine(#[source] std::io::Error),
    /// The state folder cannot be used.
    #[error("starting the gateway")]
    Folder(#[from] FolderError),
    /// The credentials cannot be read any more.
    #[error("reading the credentials")]
    Secrets(#[from] SecretsError),
    /// The event loop cannot be made.
    #[error("starting the event loop")]
    EventLoop(#[source] std::io::Error),
    /// There are no random bytes.
    #[error("drawing a boot epoch")]
    Randomness(#[from] glovebox_protocol::sign::NoRandomness),
    /// The runtime cannot be started.
    #[error("starting the {name} runtime")]
    Runtime {
        /// Which one.
        name: &'static str,
        /// Why.
        #[source]
        source: glovebox_runtime::Cause,
    },
    /// It cannot listen.
    #[error("listening at {at}")]
    Listen {
        /// Where.
        at: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The fingerprint cannot be printed.
    #[error("printing the fingerprint")]
    Print(#[source] std::io::Error),
}

fn lines(faults: &[Fault]) -> String {
    let lines: Vec<_> = faults.iter().map(Fault::to_string).collect();
    lines.join("\n")
}

/// Runs a gateway as its environment says, until it gets SIGTERM or SIGINT.
///
/// # Errors
/// When it cannot start, or its listener fails.
pub fn run() -> Result<(), ProgramError> {
    let machine = Machine {
        interfaces: config::interfaces().map_err(ProgramError::Machine)?,
        memory_bytes: config::host_memory_bytes(),
    };
    let config = Config::read(&variable, &machine).map_err(ProgramError::Config)?;
    raise_descriptors();
    let folder = StateFolder::open(&config.state)?;
    let identity = folder.identity()?;
    if identity.is_new && matches!(config.listen, Listen::Tcp(_, Transport::Tls)) {
        print_fingerprint(identity.tls.fingerprint()).map_err(ProgramError::Print)?;
    }
    let event_loop = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(ProgramError::EventLoop)?;
    event_loop.block_on(serve(&config, identity))
}

/// Takes as many descriptors as the system lets this user have: each request that is passed on
/// needs two. With fewer, connections wait.
fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What it has it may always set again.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Set by whoever starts a gateway as its child: end when standard input does.
const END_WITH_INPUT: &str = "GATEWAY_END_WITH_INPUT";

/// The fingerprint of the gateway of `GATEWAY_STATE_DIR`, whether it runs or not.
///
/// # Errors
/// When it never ran, or the folder cannot be used.
pub fn fingerprint() -> Result<Fingerprint, ProgramError> {
    let path = Config::read_state_folder(&variable).map_err(ProgramError::Config)?;
    Ok(Fingerprint::of(&folder::certificate(&path)?))
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the gateway's one place that reads the environment"
)]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

fn print_fingerprint(fingerprint: Fingerprint) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "fingerprint {fingerprint}")?;
    out.flush()
}

/// The runtime that the configuration names.
async fn start(config: &Config) -> Result<Arc<dyn Runtime>, ProgramError> {
    match config.runtime {
        RuntimeKind::Embedded => Ok(embedded::start(config, &variable).await?),
        RuntimeKind::Docker => Ok(docker::start(config, &variable).await?),
    }
}

/// Serves until a signal comes. Sandboxes stay, for the next life of the gateway.
async fn serve(config: &Config, identity: Identity) -> Result<(), ProgramError> {
    // Before anybody can know that the program runs: an uncaught signal would end it at once.
    let signals = Signals::catch()?;
    let Signals { mut stop, hangup } = signals;
    let runtime = tokio::select! {
        started = start(config) => started?,
        () = told_to_stop(&mut stop) => return Ok(()),
    };
    serve_over(config, identity, runtime, Signals { stop, hangup }).await
}

async fn serve_over(
    config: &Config,
    identity: Identity,
    runtime: Arc<dyn Runtime>,
    signals: Signals,
) -> Result<(), ProgramError> {
    let journal = Journal::to_standard_error();
    let rules = Rules {
        gateway: identity.gateway,
        installation: config.installation,
        agent_keys: config.agent_keys.clone(),
        images: config.images.clone(),
        max_sandboxes: config.max_sandboxes,
        max_memory_bytes: config.max_memory_bytes,
        ending_window_ms: ENDING_WINDOW_MS,
    };
    // Looked at first: a change in between is then seen as one.
    let stamp = config.credentials.stamp();
    let credentials = config.credentials.load()?;
    let fingerprint = identity.tls.fingerprint();
    let listener = listening::open(&config.listen, identity.tls).await?;
    let (at, listen) = (listener.place(), listener.listen());
    let surroundings = Surroundings {
        clock: system_clock(),
        journal: journal.clone(),
        place: Place {
            state: Some(config.state.clone()),
            listen: listen.or_else(|| Some(config.listen.clone())),
        },
    };
    let gateway = Gateway::new(rules, credentials, runtime, surroundings)?;
    gateway.adopt().await;
    let is_tls = matches!(listener, Listener::Tls(..));
    let facts = json!({
        "at": at,
        "gateway": identity.gateway,
        "fingerprint": is_tls.then(|| fingerprint.to_string()),
    });
    journal.tell((system_clock())(), "listening", facts);
    let Signals { mut stop, hangup } = signals;
    tokio::select! {
        source = gateway.serve(listener) => Err(ProgramError::Listen { at, source }),
        () = secrets::follow((&config.credentials, stamp), hangup, &gateway, &journal) => Ok(()),
        () = told_to_stop(&mut stop) => Ok(()),
        () = input_has_ended(variable(END_WITH_INPUT).is_some()) => Ok(()),
    }
}

/// Waits until nobody holds the other end of standard input any more, where that is to end the
/// program: a server that was killed cannot tell its gateway to stop, but its end of a pipe goes
/// with it.
async fn input_has_ended(is_wanted: bool) {
    if !is_wanted {
        return std::future::pending().await;
    }
    let pipe = std::io::stdin().as_fd().try_clone_to_owned();
    let Ok(mut pipe) = pipe.and_then(pipe::Receiver::from_owned_fd) else {
        // No pipe: nobody holds another end.
        return;
    };
    // A pipe that cannot be read is one that nobody writes to.
    let _ = tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await;
}

/// The signals that mean something to the program.
struct Signals {
    stop: [Signal; 2],
    hangup: Signal,
}

impl Signals {
    fn catch() -> Result<Self, ProgramError> {
        let catch = |kind| signal(kind).map_err(ProgramError::EventLoop);
        Ok(Self {
            stop: [
                catch(SignalKind::terminate())?,
                catch(SignalKind::interrupt())?,
            ],
            hangup: catch(SignalKind::hangup())?,
        })
    }
}

async fn told_to_stop([terminate, interrupt]: &mut [Signal; 2]) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

fn from_runtime(name: &'static str, error: RuntimeError) -> ProgramError {
    let fix = match &error {
        RuntimeError::Unsupported { fix, .. } | RuntimeError::Unavailable { fix, .. } => {
            fix.clone()
        }
        _ => None,
    };
    let source: glovebox_runtime::Cause = match fix {
        Some(fix) => format!("{}; fix: {fix}", chain("it does not start", &error)).into(),
        None => error.into(),
    };
    ProgramError::Runtime { name, source }
}
