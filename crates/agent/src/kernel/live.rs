//! One kernel's process, from its start to its end.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use glovebox_protocol::event::{Note, Outcome};
use glovebox_protocol::file::escape_for_display;
use glovebox_protocol::frame::{FrameKind, HEADER};
use tokio::sync::watch;
use tokio::time::timeout;

use super::message::FromKernel;
use super::wire::{Wire, WireFault};
use crate::process::{Child, Launch, Pipe, Taken, Workload, pipe};

/// How much of what a kernel wrote before it was ready is kept to explain a failed start.
const LOG_BYTES: usize = 4 * 1024;

/// How a kernel's process ended.
#[derive(Debug, Clone)]
pub(crate) struct KernelEnd {
    pub(crate) outcome: Outcome,
    pub(crate) notes: Vec<Note>,
}

/// A kernel that is ready.
pub(crate) struct Live {
    pub(crate) child: Child,
    pub(crate) wire: Wire,
    /// Set once its process has ended.
    pub(crate) ended: watch::Receiver<Option<KernelEnd>>,
    pub(crate) language: String,
    /// How often memory had run out when the present call began: what is more is this call's.
    pub(crate) oom_kills_before: Arc<AtomicU64>,
}

impl Live {
    /// Whether its process has not ended.
    pub(crate) fn is_alive(&self) -> bool {
        self.child.exit().is_none()
    }
}

/// A kernel did not come up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KernelStartError {
    #[error("starting the kernel's process")]
    Spawn(#[source] std::io::Error),
    #[error("the kernel {} while it was starting{}", end.outcome, said(log))]
    Ended { end: KernelEnd, log: String },
    #[error("the kernel {fault} while it was starting{}", said(log))]
    Broken { fault: WireFault, log: String },
    #[error("the kernel was not ready after {} ms{}", limit.as_millis(), said(log))]
    TooSlow { limit: Duration, log: String },
}

fn said(log: &str) -> String {
    if log.is_empty() {
        String::new()
    } else {
        format!("; it wrote: {log}")
    }
}

/// A process that is not ready yet.
pub(crate) struct Starting {
    child: Child,
    wire: Wire,
    ended: watch::Receiver<Option<KernelEnd>>,
    oom_kills_before: Arc<AtomicU64>,
    pipes: [Pipe; 2],
    log: Vec<u8>,
}

impl Starting {
    /// Starts the process. From here on somebody waits for its end, says why it came, and ends
    /// what it left running.
    pub(crate) fn spawn(
        workload: &Arc<Workload>,
        python: &str,
        env: &BTreeMap<String, String>,
    ) -> Result<Self, KernelStartError> {
        let spawn = || -> std::io::Result<Self> {
            let (wire, theirs) = Wire::pair()?;
            let (stdout, stdout_write) = pipe(FrameKind::Stdout)?;
            let (stderr, stderr_write) = pipe(FrameKind::Stderr)?;
            // Files of the workspace must not stand in for modules (`-P`).
            let argv = [python, "-P", "-m", "glovebox_kernel"].map(OsStr::new);
            let oom_kills_before = Arc::new(AtomicU64::new(workload.oom_kills()));
            let (child, tenant) = workload.start(Launch {
                argv: &argv,
                env,
                stdin: theirs.into(),
                stdout: stdout_write.into(),
                stderr: stderr_write.into(),
            })?;
            let (sender, ended) = watch::channel(None);
            let (workload, watched) = (Arc::clone(workload), child.clone());
            let before = Arc::clone(&oom_kills_before);
            tokio::spawn(async move {
                let exit = watched.wait().await;
                let before = before.load(Ordering::Relaxed);
                let oom_kills = workload.oom_kills().saturating_sub(before);
                let (outcome, notes) = workload.outcome(exit, oom_kills);
                sender.send_replace(Some(KernelEnd { outcome, notes }));
                // Whatever it was, what the kernel started does not outlive it.
                workload.clear(&watched).await;
                drop(tenant);
            });
            Ok(Self {
                child,
                wire,
                ended,
                oom_kills_before,
                pipes: [stdout, stderr],
                log: Vec::new(),
            })
        };
        spawn().map_err(KernelStartError::Spawn)
    }

    pub(crate) const fn child(&self) -> &Child {
        &self.child
    }

    /// Waits until it takes code. One that does not is killed.
    pub(crate) async fn ready(
        mut self,
        workload: &Workload,
        limit: Duration,
    ) -> Result<Live, KernelStartError> {
        let result = timeout(limit, self.first_message()).await;
        let log = || escape_for_display(&self.log);
        let error = match result {
            Ok(Ok(language)) => {
                let [stdout, stderr] = self.pipes;
                for pipe in [stdout, stderr] {
                    tokio::spawn(ignore(pipe));
                }
                return Ok(Live {
                    child: self.child,
                    wire: self.wire,
                    ended: self.ended,
                    oom_kills_before: self.oom_kills_before,
                    language,
                });
            }
            Ok(Err(None)) => KernelStartError::Ended {
                end: end_of(&mut self.ended.clone()).await,
                log: log(),
            },
            Ok(Err(Some(fault))) => KernelStartError::Broken { fault, log: log() },
            Err(_) => KernelStartError::TooSlow { limit, log: log() },
        };
        workload.kill(&self.child);
        end_of(&mut self.ended).await;
        Err(error)
    }

    /// The language that the first message names. An error without a fault: the process ended.
    async fn first_message(&mut self) -> Result<String, Option<WireFault>> {
        let [stdout, stderr] = &mut self.pipes;
        let (mut out_open, mut err_open) = (true, true);
        let mut ended = self.ended.clone();
        let result = loop {
            tokio::select! {
                biased;
                message = self.wire.next() => match message {
                    Ok(Some(FromKernel::Ready { language })) => {
                        let shown: String = language.chars().take(64).collect();
                        break Ok(escape_for_display(shown.as_bytes()));
                    }
                    Ok(Some(_)) => break Err(Some(WireFault::OutOfPlace)),
                    Ok(None) => {
                        end_of(&mut self.ended.clone()).await;
                        break Err(None);
                    }
                    Err(fault) => break Err(Some(fault)),
                },
                () = stdout.readable(), if out_open => out_open = note(stdout, &mut self.log),
                () = stderr.readable(), if err_open => err_open = note(stderr, &mut self.log),
                _ = end_of(&mut ended) => break Err(None),
            }
        };
        if let Taken::Chunk(chunk) = stderr.take_at_once() {
            keep(&chunk[HEADER..], &mut self.log);
        }
        result
    }
}

/// The end of a kernel, once it has come.
pub(crate) async fn end_of(ended: &mut watch::Receiver<Option<KernelEnd>>) -> KernelEnd {
    let end = ended.wait_for(Option::is_some).await;
    end.ok().and_then(|end| end.clone()).unwrap_or(KernelEnd {
        outcome: Outcome::Signaled { signal: 9 },
        notes: Vec::new(),
    })
}

/// Keeps the last of what is written. Says whether more can come.
fn note(pipe: &mut Pipe, log: &mut Vec<u8>) -> bool {
    match pipe.take() {
        Taken::Chunk(chunk) => {
            keep(&chunk[HEADER..], log);
            true
        }
        Taken::Nothing => true,
        Taken::End => false,
    }
}

fn keep(bytes: &[u8], log: &mut Vec<u8>) {
    log.extend_from_slice(bytes);
    let superfluous = log.len().saturating_sub(LOG_BYTES);
    log.drain(..superfluous);
}

/// Reads a pipe that nobody is interested in, so that no writer waits.
async fn ignore(mut pipe: Pipe) {
    loop {
        pipe.readable().await;
        if matches!(pipe.take(), Taken::End) {
            return;
        }
    }
}
