//! The line to the launcher: starts it, sends requests, matches answers, and notices its end.
//!
//! Knows nothing of what the requests mean.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use glovebox_box::control::{
    BoxEnd, BoxFacts, DOOR, Fault, FromLauncher, LauncherConfig, PodFacts, ToLauncher,
};
use glovebox_protocol::ids::SandboxId;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Longest line of the launcher's, in bytes.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// How long a launcher that stays may take to let a runtime in. One that serves another lets it
/// wait until that is gone.
const DOOR_PATIENCE: Duration = Duration::from_secs(10);

/// How much of what the launcher says on standard error is kept for messages, in bytes.
const KEPT_STDERR: usize = 4096;

/// How the line to the launcher can fail.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    /// The program could not be started.
    #[error("starting the launcher {}", program.display())]
    Start {
        /// Which program.
        program: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The launcher is not there any more.
    #[error("the launcher has ended{}", detail(said))]
    Ended {
        /// What it said last on standard error.
        said: String,
    },
    /// There is one, and it does not take this runtime.
    #[error("the launcher at {} serves another runtime", door.display())]
    Busy {
        /// Where it was asked.
        door: PathBuf,
    },
    /// The launcher said something that is no answer.
    #[error("the launcher's answer could not be read")]
    Garbled(#[source] serde_json::Error),
    /// The launcher said something that is no answer, and was ended for it.
    #[error("the launcher was ended, because what it said could not be read: {0}")]
    Distrusted(String),
    /// The launcher answered with something that does not belong to the request.
    #[error("the launcher gave an answer to another request")]
    Mismatched,
    /// The launcher could not do what was asked.
    #[error(transparent)]
    Fault(Fault),
}

fn detail(said: &str) -> String {
    if said.is_empty() {
        String::new()
    } else {
        format!("; it said: {}", said.trim_end())
    }
}

/// Told about boxes that end by themselves, and about the end of the launcher.
pub(crate) trait Watcher: Send + 'static {
    /// A box was made that somebody asked for who is gone.
    fn found(&self, facts: &BoxFacts);
    /// A box has ended and was cleaned up.
    fn ended(&self, sandbox: SandboxId, end: &BoxEnd);
    /// The launcher has ended, and every box with it.
    fn launcher_gone(&self);
}

#[derive(Default)]
struct Waiting {
    next: u64,
    answers: HashMap<u64, oneshot::Sender<FromLauncher>>,
    over: bool,
    /// What could not be read, where that is how it came to an end.
    garbled: Option<String>,
}

/// A running launcher.
pub(crate) struct Link {
    writer: tokio::sync::Mutex<Option<OwnedWriteHalf>>,
    waiting: Arc<Mutex<Waiting>>,
    said: Arc<Mutex<Vec<u8>>>,
    /// The launcher, where it was started here and not found.
    child: tokio::sync::Mutex<Option<Child>>,
    /// Over when the launcher has said its last.
    routing: tokio::sync::Mutex<Option<JoinHandle<()>>>,
}

impl Link {
    /// Starts a launcher and waits until it can make boxes.
    ///
    /// # Errors
    /// When it cannot be started, or says why it cannot work here.
    pub(crate) async fn start(
        program: &Path,
        config: &LauncherConfig,
        watcher: impl Watcher,
    ) -> Result<(Self, PodFacts), LinkError> {
        let starting = |source| LinkError::Start {
            program: program.to_owned(),
            source,
        };
        let (ours, theirs) = std::os::unix::net::UnixStream::pair().map_err(starting)?;
        ours.set_nonblocking(true).map_err(starting)?;
        let mut child = Command::new(program)
            .env_clear()
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A key typed at the terminal is for the command, from the first moment on.
            .process_group(0)
            .spawn()
            .map_err(starting)?;
        let said = Arc::default();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(keep_stderr(stderr, Arc::clone(&said)));
        }
        let stream = UnixStream::from_std(ours).map_err(starting)?;
        Self::begin(stream, Some(child), said, config, watcher).await
    }

    /// Comes in to a launcher that stays. Nothing where there is none, or it is just ending.
    ///
    /// # Errors
    /// When there is one that does not take this runtime.
    pub(crate) async fn attach(
        config: &LauncherConfig,
        watcher: impl Watcher,
    ) -> Result<Option<(Self, PodFacts)>, LinkError> {
        let door = config.run.join(DOOR);
        let Ok(stream) = UnixStream::connect(&door).await else {
            return Ok(None);
        };
        let attaching = Self::begin(stream, None, Arc::default(), config, watcher);
        match timeout(DOOR_PATIENCE, attaching).await {
            Ok(Ok(attached)) => Ok(Some(attached)),
            Ok(Err(LinkError::Ended { .. })) => Ok(None),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(LinkError::Busy { door }),
        }
    }

    async fn begin(
        stream: UnixStream,
        child: Option<Child>,
        said: Arc<Mutex<Vec<u8>>>,
        config: &LauncherConfig,
        watcher: impl Watcher,
    ) -> Result<(Self, PodFacts), LinkError> {
        let (reader, writer) = stream.into_split();
        let pid = child.as_ref().and_then(Child::id);
        let link = Self {
            writer: tokio::sync::Mutex::new(Some(writer)),
            waiting: Arc::new(Mutex::new(Waiting {
                next: first_id(),
                ..Waiting::default()
            })),
            said,
            child: tokio::sync::Mutex::new(child),
            routing: tokio::sync::Mutex::default(),
        };
        let mut lines = BufReader::new(reader);
        link.send(config).await?;
        let facts = match read_line(&mut lines).await {
            Ok(Some(FromLauncher::Ready(facts))) => facts,
            Ok(Some(FromLauncher::Failed { fault, .. })) => return Err(LinkError::Fault(fault)),
            Ok(Some(_)) => return Err(LinkError::Mismatched),
            Ok(None) => return Err(link.ended().await),
            Err(error) => return Err(LinkError::Garbled(error)),
        };
        let pid = rustix::process::Pid::from_raw(pid.map_or(0, u32::cast_signed));
        let routing = tokio::spawn(route(lines, pid, Arc::clone(&link.waiting), watcher));
        *link.routing.lock().await = Some(routing);
        Ok((link, facts))
    }

    /// Whether the launcher has ended, or cannot be understood any more.
    pub(crate) fn is_over(&self) -> bool {
        lock(&self.waiting).over
    }

    /// Sends one request and waits for its answer.
    ///
    /// # Errors
    /// When the launcher cannot do it, or is gone.
    pub(crate) async fn ask(
        &self,
        request: impl FnOnce(u64) -> ToLauncher,
    ) -> Result<FromLauncher, LinkError> {
        let (sender, answer) = oneshot::channel();
        let id = {
            let mut waiting = lock(&self.waiting);
            if waiting.over {
                None
            } else {
                waiting.next += 1;
                let id = waiting.next;
                waiting.answers.insert(id, sender);
                Some(id)
            }
        };
        let Some(id) = id else {
            return Err(self.ended().await);
        };
        if let Err(error) = self.send(&request(id)).await {
            lock(&self.waiting).answers.remove(&id);
            return Err(error);
        }
        match answer.await {
            Ok(FromLauncher::Failed { fault, .. }) => Err(LinkError::Fault(fault)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(self.ended().await),
        }
    }

    /// Lets the launcher end, which removes every box, and waits until it has. Gives its status
    /// where it was started here.
    ///
    /// # Errors
    /// When its end cannot be waited for.
    pub(crate) async fn close(&self) -> std::io::Result<Option<ExitStatus>> {
        // One that is gone has ended.
        let _ = self.send(&ToLauncher::End).await;
        self.writer.lock().await.take();
        if let Some(routing) = self.routing.lock().await.take() {
            routing.await?;
        }
        match self.child.lock().await.as_mut() {
            Some(child) => child.wait().await.map(Some),
            None => Ok(None),
        }
    }

    async fn send(&self, line: &impl serde::Serialize) -> Result<(), LinkError> {
        let mut text = serde_json::to_vec(line).map_err(LinkError::Garbled)?;
        text.push(b'\n');
        let sent = match self.writer.lock().await.as_mut() {
            Some(writer) => writer.write_all(&text).await.is_ok(),
            None => false,
        };
        if sent {
            Ok(())
        } else {
            Err(self.ended().await)
        }
    }

    async fn ended(&self) -> LinkError {
        if let Some(what) = lock(&self.waiting).garbled.clone() {
            return LinkError::Distrusted(what);
        }
        // Its last words arrive before its exit status does.
        if let Some(child) = self.child.lock().await.as_mut() {
            let _ = child.wait().await;
        }
        LinkError::Ended {
            said: String::from_utf8_lossy(&lock(&self.said)).into_owned(),
        }
    }
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Link").finish_non_exhaustive()
    }
}

/// Nothing panics while it holds one of these locks; if something did, the data are still whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where the numbers of requests begin: elsewhere in each runtime, so that an answer to one that
/// is gone is not taken for another.
fn first_id() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let micros = since.map_or(0, |since| since.as_micros());
    u64::try_from(micros).unwrap_or(0)
}

async fn read_line(
    lines: &mut BufReader<OwnedReadHalf>,
) -> Result<Option<FromLauncher>, serde_json::Error> {
    let mut line = Vec::new();
    let mut bounded = lines.take(MAX_LINE);
    let read = bounded.read_until(b'\n', &mut line).await;
    let whole = line.ends_with(b"\n") || line.len() as u64 == MAX_LINE;
    match read {
        // One that is too long is no document either.
        Ok(count) if count > 0 && whole => serde_json::from_slice(&line).map(Some),
        // A half line is a launcher that ended in the middle of it.
        Ok(_) => Ok(None),
        Err(error) => Err(serde_json::Error::io(error)),
    }
}

async fn route(
    mut lines: BufReader<OwnedReadHalf>,
    launcher: Option<rustix::process::Pid>,
    waiting: Arc<Mutex<Waiting>>,
    watcher: impl Watcher,
) {
    loop {
        let line = match read_line(&mut lines).await {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                lock(&waiting).garbled = Some(error.to_string());
                // It is not waited for before the link is closed, so the number is still its own.
                if let Some(launcher) = launcher {
                    let term = rustix::process::Signal::TERM;
                    let _ = rustix::process::kill_process(launcher, term);
                }
                break;
            }
        };
        let id = match &line {
            FromLauncher::Ended { sandbox, end } => {
                watcher.ended(*sandbox, end);
                continue;
            }
            FromLauncher::Ready(_) => continue,
            FromLauncher::Created { id, .. }
            | FromLauncher::Removed { id }
            | FromLauncher::Listed { id, .. }
            | FromLauncher::Kept { id }
            | FromLauncher::Measured { id, .. }
            | FromLauncher::Failed { id, .. } => *id,
        };
        let asked = lock(&waiting).answers.remove(&id);
        match (asked, line) {
            // Whoever asked may have gone away; the launcher's work is done all the same.
            (Some(answer), line) => drop(answer.send(line)),
            (None, FromLauncher::Created { facts, .. }) => watcher.found(&facts),
            (None, _) => {}
        }
    }
    let mut waiting = lock(&waiting);
    waiting.over = true;
    waiting.answers.clear();
    drop(waiting);
    watcher.launcher_gone();
}

async fn keep_stderr(mut stderr: ChildStderr, said: Arc<Mutex<Vec<u8>>>) {
    let mut chunk = [0; 1024];
    while let Ok(count) = stderr.read(&mut chunk).await {
        if count == 0 {
            break;
        }
        let mut said = lock(&said);
        said.extend_from_slice(&chunk[..count]);
        let over = said.len().saturating_sub(KEPT_STDERR);
        said.drain(..over);
    }
}
