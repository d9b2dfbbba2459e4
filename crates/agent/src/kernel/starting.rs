//! One kernel's process, from its start until it takes code.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::file::escape_for_display;
use glovebox_protocol::frame::FrameKind;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::live::{KernelEnd, Live, end_of};
use super::message::FromKernel;
use super::start_log::StartLog;
use super::wire::{Wire, WireFault};
use crate::error::ApiError;
use crate::process::{Child, Launch, Tenant, Workload, pipe};

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

impl KernelStartError {
    /// Nothing came up in time that could have written anything.
    pub(crate) const fn too_slow(limit: Duration) -> Self {
        let log = String::new();
        Self::TooSlow { limit, log }
    }
}

impl From<KernelStartError> for ApiError {
    fn from(error: KernelStartError) -> Self {
        match error {
            KernelStartError::TooSlow { .. } => Self::start_timeout(error.to_string()),
            error => Self::internal("starting the kernel", &error),
        }
    }
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
    start: Start,
    log: StartLog,
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
            let oom_kills_before = workload.oom_kills();
            let (child, tenant) = workload.start(Launch {
                argv: &argv,
                env,
                stdin: theirs.into(),
                stdout: stdout_write.into(),
                stderr: stderr_write.into(),
            })?;
            Ok(Self {
                start: Start::Fresh,
                log: StartLog::new(stdout, stderr),
                ..Self::watched(workload, (child, tenant), wire, oom_kills_before)
            })
        };
        spawn().map_err(KernelStartError::Spawn)
    }

    /// Takes over a process that was copied from a template into this sandbox, as one of the
    /// agent's own children. It writes to nowhere until its first call.
    pub(crate) fn adopt(
        workload: &Arc<Workload>,
        tenant: Tenant,
        pid: i32,
        wire: OwnedFd,
    ) -> std::io::Result<Self> {
        let wire = Wire::from_descriptor(wire)?;
        let child = workload.adopt(pid)?;
        let oom_kills_before = workload.oom_kills();
        Ok(Self::watched(
            workload,
            (child, tenant),
            wire,
            oom_kills_before,
        ))
    }

    fn watched(
        workload: &Arc<Workload>,
        (child, tenant): (Child, Tenant),
        wire: Wire,
        oom_kills_before: u64,
    ) -> Self {
        let before = Arc::new(AtomicU64::new(oom_kills_before));
        let (sender, ended) = watch::channel(None);
        let starting = Self {
            child: child.clone(),
            wire,
            ended,
            oom_kills_before: Arc::clone(&before),
            start: Start::Template,
            log: StartLog::empty(),
        };
        let workload = Arc::clone(workload);
        tokio::spawn(async move {
            let exit = child.wait().await;
            let before = before.load(Ordering::Relaxed);
            let oom_kills = workload.oom_kills().saturating_sub(before);
            let (outcome, notes) = workload.outcome(exit, oom_kills);
            sender.send_replace(Some(KernelEnd { outcome, notes }));
            // Whatever it was, what the kernel started does not outlive it.
            workload.clear(&child).await;
            drop(tenant);
        });
        starting
    }

    pub(crate) const fn child(&self) -> &Child {
        &self.child
    }

    /// Waits until it takes code. One that does not is killed. `limit` is how long all of its
    /// start may take, for messages.
    pub(crate) async fn ready(
        mut self,
        workload: &Workload,
        deadline: Instant,
        limit: Duration,
    ) -> Result<Live, KernelStartError> {
        let result = timeout_at(deadline, self.first_message()).await;
        let error = match result {
            Ok(Ok(language)) => {
                self.log.ignore();
                return Ok(Live {
                    child: self.child,
                    wire: self.wire,
                    ended: self.ended,
                    oom_kills_before: self.oom_kills_before,
                    language,
                    start: self.start,
                    alarm: None,
                });
            }
            Ok(Err(None)) => KernelStartError::Ended {
                end: end_of(&mut self.ended.clone()).await,
                log: self.log.text(),
            },
            Ok(Err(Some(fault))) => KernelStartError::Broken {
                fault,
                log: self.log.text(),
            },
            Err(_) => KernelStartError::TooSlow {
                limit,
                log: self.log.text(),
            },
        };
        workload.kill(&self.child);
        end_of(&mut self.ended).await;
        Err(error)
    }

    /// The language that the first message names. An error without a fault: the process ended.
    async fn first_message(&mut self) -> Result<String, Option<WireFault>> {
        let mut ended = self.ended.clone();
        let result = tokio::select! {
            biased;
            message = self.wire.next() => match message {
                Ok(Some(FromKernel::Ready { language })) => {
                    let shown: String = language.chars().take(64).collect();
                    Ok(escape_for_display(shown.as_bytes()))
                }
                Ok(Some(_)) => Err(Some(WireFault::OutOfPlace)),
                Ok(None) => {
                    end_of(&mut ended).await;
                    Err(None)
                }
                Err(fault) => Err(Some(fault)),
            },
            never = self.log.read() => match never {},
            _ = end_of(&mut ended) => Err(None),
        };
        self.log.read_last();
        result
    }
}
