//! The agent where it has nothing but its standard streams: process 1 of a container whose engine
//! joins them to whoever attaches.
//!
//! One thread reads and never waits for what is written; another writes. Each attach is a session
//! with a multiplexed connection of its own, see `session.rs`; what a record is stands in
//! [`glovebox_protocol::record`]. When a session is over the executions that were started in it go
//! on: their output is in their logs, and their end can be asked for by their id.

mod attached;
mod input;
mod output;
mod session;

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::agent_config::{AgentConfig, OomEvents};
use glovebox_protocol::record::{Kind, Nonce};
use rustix::fs::{Mode, OFlags};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::agent::{Agent, Options};
use crate::boot::{BootError, WORKSPACE, bring_up, event_loop, hide};
use crate::process::Spawner;
use input::Heard;
use output::Output;
use session::Session;

/// A session whose gateway has not said anything for so long is over. A gateway says that it is
/// there every five seconds.
const SILENCE_LIMIT: Duration = Duration::from_secs(20);

/// Records that may wait to be looked at.
const HEARD_AHEAD: usize = 64;

/// Where a container finds how often its own control group was hit by the out-of-memory killer,
/// in version 2 and in version 1.
const OOM_COUNTERS: [&str; 2] = [
    "/sys/fs/cgroup/memory.events",
    "/sys/fs/cgroup/memory/memory.oom_control",
];

/// Runs the agent as process 1 of a container. Returns only when it cannot go on.
#[must_use]
pub fn run() -> BootError {
    match boot() {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn boot() -> Result<std::convert::Infallible, BootError> {
    // First of all: with its id others could read its memory, and speak through its descriptors.
    hide()?;
    let (stdin, stdout) = take_streams().map_err(BootError::Streams)?;
    event_loop()?.block_on(async {
        let (sender, mut heard) = mpsc::channel(HEARD_AHEAD);
        let output = Output::start(stdout).map_err(BootError::Runtime)?;
        input::start(stdin, sender).map_err(BootError::Runtime)?;
        let (nonce, config) = first_words(&mut heard, &output).await?;
        let agent = match start(*config).await {
            Ok(agent) => agent,
            Err(error) => {
                let why = chain(&error);
                output
                    .last_word(nonce.tag(), Kind::Refused, why.as_bytes())
                    .await;
                return Err(error);
            }
        };
        output.say(nonce.tag(), Kind::Ready, &[]);
        Err(serve(&agent, nonce, &mut heard, &output).await)
    })
}

/// Takes standard input and output for the agent alone; nothing that it starts inherits them.
fn take_streams() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let stdout = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    rustix::stdio::dup2_stdin(&nothing)?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok((stdin, stdout))
}

/// Waits for the first session and the configuration in it.
async fn first_words(
    heard: &mut mpsc::Receiver<Heard>,
    output: &Arc<Output>,
) -> Result<(Nonce, Box<AgentConfig>), BootError> {
    let mut session = None;
    loop {
        match (heard.recv().await, session) {
            (Some(Heard::Hello(nonce)), _) => {
                session = Some(nonce);
                output.begin(nonce);
            }
            (Some(Heard::Config(config)), Some(nonce)) => return Ok((nonce, config)),
            (Some(Heard::BadConfig(error)), Some(nonce)) => {
                let why = format!("the configuration cannot be read: {error}");
                output
                    .last_word(nonce.tag(), Kind::Refused, why.as_bytes())
                    .await;
                return Err(BootError::ParseConfig(error));
            }
            (Some(_), _) => {}
            (None, _) => return Err(BootError::StreamsEnded),
        }
    }
}

async fn start(mut config: AgentConfig) -> Result<Agent, BootError> {
    let mut options = Options::new(WORKSPACE, Spawner::Sealed);
    options.oom_events = OOM_COUNTERS
        .iter()
        .find_map(|path| fs_err::File::open(path).ok())
        .map(|file| file.into_parts().0.into());
    config.fds.launcher = None;
    config.fds.workload_cgroups = Vec::new();
    // That there is one makes workloads the first to go when memory runs out.
    config.fds.oom_events = options.oom_events.as_ref().map(|file| OomEvents {
        fd: std::os::fd::AsRawFd::as_raw_fd(file),
    });
    bring_up(config, options).await
}

/// An error with its causes, in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// Serves one session after the other until the streams end.
async fn serve(
    agent: &Agent,
    first: Nonce,
    heard: &mut mpsc::Receiver<Heard>,
    output: &Arc<Output>,
) -> BootError {
    let mut session = Some(Session::begin(first, agent, output));
    let mut deadline = Instant::now() + SILENCE_LIMIT;
    loop {
        let next = match &session {
            Some(_) => timeout_at(deadline, heard.recv()).await,
            None => Ok(heard.recv().await),
        };
        deadline = Instant::now() + SILENCE_LIMIT;
        let is_over = match next {
            Ok(None) => return BootError::StreamsEnded,
            Ok(Some(Heard::Hello(nonce))) => {
                if session
                    .as_ref()
                    .is_none_or(|session| session.nonce != nonce)
                {
                    drop(session.take());
                    output.begin(nonce);
                    session = Some(Session::begin(nonce, agent, output));
                } else {
                    output.say(nonce.tag(), Kind::Ack, &nonce.0);
                }
                false
            }
            Ok(Some(Heard::Data(bytes))) => session.as_ref().is_some_and(|s| !s.take(bytes)),
            Ok(Some(Heard::Alive | Heard::Config(_) | Heard::BadConfig(_))) => false,
            Ok(Some(Heard::OutOfStep)) | Err(_) => true,
        };
        if is_over && let Some(session) = session.take() {
            output.say(session.nonce.tag(), Kind::Desync, &[]);
        }
    }
}
