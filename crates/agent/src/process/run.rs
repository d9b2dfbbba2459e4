//! `POST /v1/processes` and what belongs to it: one program from start to end.

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::event::{Ended, EventBody, Note, Outcome};
use glovebox_protocol::frame::{FrameKind, HEADER};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::{Argument, Cancel, StartProcess, Stdin};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::Signal;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::watch;
use tokio::task::consume_budget;
use tokio::time::{Instant, timeout, timeout_at};

use super::launch::check_env;
use super::output::Taken;
use super::workload::Tenant;
use super::{
    Asked, Child, Claim, Exit, Launch, PROGRAM_GRACE, Pace, Pipe, Registry, Running, Sink,
    Workload, pipe,
};
use crate::error::ApiError;
use crate::reply::{self, Reply};

/// Starts a program and answers with the stream of its output.
pub(crate) async fn start(
    workload: &Arc<Workload>,
    registry: &Arc<Registry>,
    request: StartProcess,
) -> Reply {
    check(&request)?;
    let claim = registry.claim(request.execution)?;
    let began = Instant::now();
    let oom_kills_before = workload.oom_kills();
    let (frames, response) = reply::frames();
    let sink = Arc::new(Sink::new(frames, request.output_limit_bytes, claim.log()));
    let execution = claim.id();
    let first = EventBody::ExecutionStarted { execution };
    match launch(workload, &request) {
        Ok(started) => {
            // At once, so that it goes out with the head of the answer.
            sink.event(&first).await;
            claim.set_running(Arc::clone(&started.running));
            let run = Run {
                workload: Arc::clone(workload),
                claim,
                sink,
                began,
                oom_kills_before,
                time_limit: Duration::from_millis(request.time_limit_ms),
            };
            tokio::spawn(run.finish(started));
        }
        // Outside a box nothing stands between us and the program to report this.
        Err(error) if !workload.launcher.is_sealed() => {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => 127,
                _ => 126,
            };
            sink.event(&first).await;
            tokio::spawn(not_started(sink, claim, began, error.to_string(), code));
        }
        Err(error) => return Err(ApiError::internal("starting a program", &error)),
    }
    Ok(response)
}

fn check(request: &StartProcess) -> Result<(), ApiError> {
    if request.argv.is_empty() || request.argv[0].as_bytes().is_empty() {
        return Err(ApiError::invalid("`argv` names no program"));
    }
    if request.argv.iter().any(|arg| arg.as_bytes().contains(&0)) {
        return Err(ApiError::invalid("an argument holds a NUL byte"));
    }
    if request.time_limit_ms == 0 {
        return Err(ApiError::invalid(
            "`time_limit_ms` is 0; it must be at least 1",
        ));
    }
    check_env(&request.env).map_err(ApiError::invalid)
}

/// A program and the ends of its pipes.
struct Started {
    running: Arc<Running>,
    tenant: Tenant,
    stdout: Pipe,
    stderr: Pipe,
}

fn launch(workload: &Arc<Workload>, request: &StartProcess) -> std::io::Result<Started> {
    let (stdout, stdout_write) = pipe(FrameKind::Stdout)?;
    let (stderr, stderr_write) = pipe(FrameKind::Stderr)?;
    let (stdin_write, stdin) = match request.stdin {
        Stdin::Empty => (None, Stdio::null()),
        Stdin::Requests => {
            let (read, write): (OwnedFd, OwnedFd) = pipe_with(PipeFlags::CLOEXEC)?;
            let sender = tokio::net::unix::pipe::Sender::from_owned_fd(write)?;
            (Some(sender), read.into())
        }
    };
    let argv: Vec<&OsStr> = request
        .argv
        .iter()
        .map(|argument| OsStr::from_bytes(Argument::as_bytes(argument)))
        .collect();
    let (child, tenant) = workload.start(Launch {
        argv: &argv,
        env: &request.env,
        stdin,
        stdout: stdout_write.into(),
        stderr: stderr_write.into(),
    })?;
    Ok(Started {
        running: Arc::new(Running {
            child,
            asked: Default::default(),
            stdin: tokio::sync::Mutex::new(stdin_write),
        }),
        tenant,
        stdout,
        stderr,
    })
}

async fn not_started(sink: Arc<Sink>, claim: Claim, began: Instant, why: String, code: i32) {
    let mut line = vec![0; HEADER];
    line.extend_from_slice(format!("glovebox: the program cannot be started: {why}\n").as_bytes());
    sink.output(FrameKind::Stderr, line).await;
    let ended = Ended {
        execution: claim.id(),
        outcome: Outcome::Exited { code },
        duration_ms: milliseconds_since(began),
        notes: Vec::new(),
    };
    claim.end(&ended);
    sink.finish(&EventBody::ExecutionEnded(ended)).await;
}

/// One program on its way.
struct Run {
    workload: Arc<Workload>,
    claim: Claim,
    sink: Arc<Sink>,
    began: Instant,
    oom_kills_before: u64,
    time_limit: Duration,
}

/// How the waiting for a program came to its end.
struct End {
    exit: Exit,
    /// Whether the time limit came first, and whether it then had to be killed.
    over_time: Option<bool>,
}

impl Run {
    async fn finish(self, started: Started) {
        let execution = self.claim.id();
        let child = started.running.child.clone();
        let (exited, exit_seen) = watch::channel(false);
        let pumps = [started.stdout, started.stderr]
            .map(|pipe| tokio::spawn(pump(pipe, Arc::clone(&self.sink), exit_seen.clone())));
        let end = self.wait(&child, &started.running).await;
        let duration_ms = milliseconds_since(self.began);
        let oom_kills = self
            .workload
            .oom_kills()
            .saturating_sub(self.oom_kills_before);
        // What the program left running is ended while its pipes are emptied, however slowly
        // that goes: what it had written by the time the program ended is in them already.
        self.sink.set_pace(Pace::Ended);
        exited.send_replace(true);
        let emptied = async {
            for pump in pumps {
                // A pump that panicked has ended too.
                let _ = pump.await;
            }
        };
        let (left, ()) = tokio::join!(self.workload.clear(&child), emptied);
        let asked = started.running.asked.with(|asked| *asked);
        let (outcome, mut notes) = self.outcome(end, asked, oom_kills);
        if !outcome.is_success() {
            notes.extend(self.workload.disk_note().await);
        }
        if left > 0 {
            notes.push(Note::LeftRunning { processes: left });
        }
        let ended = Ended {
            execution,
            outcome,
            duration_ms,
            notes,
        };
        self.claim.end(&ended);
        // Both at once: while the one is there, so is what a cancel would find.
        drop(self.claim);
        drop(started.tenant);
        self.sink.finish(&EventBody::ExecutionEnded(ended)).await;
    }

    /// Waits for the program's exit, and brings it about when the time is over or nobody reads.
    async fn wait(&self, child: &Child, running: &Running) -> End {
        let deadline = self.began + self.time_limit;
        let first = tokio::select! {
            biased;
            exit = timeout_at(deadline, child.wait()) => exit.ok(),
            () = self.sink.closed() => {
                running.asked.with(|asked| *asked = Asked::Kill);
                self.workload.kill(child);
                Some(child.wait().await)
            }
        };
        if let Some(exit) = first {
            return End {
                exit,
                over_time: None,
            };
        }
        child.signal(Signal::INT);
        let (exit, killed) = match timeout(PROGRAM_GRACE, child.wait()).await {
            Ok(exit) => (exit, false),
            Err(_) => {
                self.workload.kill(child);
                (child.wait().await, true)
            }
        };
        End {
            exit,
            over_time: Some(killed),
        }
    }

    fn outcome(&self, end: End, asked: Asked, oom_kills: u64) -> (Outcome, Vec<Note>) {
        let (outcome, notes) = self.workload.outcome(end.exit, oom_kills);
        let asked_for = match (asked, &outcome) {
            (Asked::Kill, Outcome::Signaled { signal }) if *signal == Signal::KILL.as_raw() => {
                Some(true)
            }
            (Asked::Interrupt, Outcome::Signaled { signal }) if *signal == Signal::INT.as_raw() => {
                Some(false)
            }
            _ => None,
        };
        let outcome = match (end.over_time, asked_for) {
            (Some(killed), _) => Outcome::TimeLimit {
                limit_ms: u64::try_from(self.time_limit.as_millis()).unwrap_or(u64::MAX),
                killed,
            },
            (None, Some(killed)) => Outcome::Cancelled { killed },
            (None, None) => outcome,
        };
        (outcome, notes)
    }
}

/// Carries what a program writes to the sink until every writer is gone, or until the program
/// has ended and what it had written by then is carried: children that hold the pipe open do not
/// hold up the end.
async fn pump(mut pipe: Pipe, sink: Arc<Sink>, mut exited: watch::Receiver<bool>) {
    let mut left = None;
    loop {
        // A pipe that never runs empty is read without a wait, and what is over the budget for
        // output is dropped without one: nobody else would get their turn.
        consume_budget().await;
        if left.is_none() {
            tokio::select! {
                biased;
                // A dropped sender means that the run is gone, and with it the reader.
                _ = exited.wait_for(|exited| *exited) => left = Some(pipe.fill()),
                () = pipe.readable() => {}
            }
        }
        if left == Some(0) {
            return;
        }
        let taken = match left {
            None => pipe.take(),
            Some(_) => pipe.take_at_once(),
        };
        match taken {
            Taken::Chunk(chunk) => {
                left = left.map(|left| left.saturating_sub(chunk.len() - HEADER));
                sink.output(pipe.kind, chunk).await;
            }
            Taken::Nothing if left.is_none() => {}
            Taken::Nothing | Taken::End => return,
        }
    }
}

/// `POST /v1/processes/ID/stdin`: feeds a program and closes its input with `eof`.
pub(crate) async fn stdin(
    registry: &Registry,
    id: ExecutionId,
    bytes: &[u8],
    eof: bool,
) -> Result<(), ApiError> {
    let running = registry.running(id)?;
    let mut stdin = running.stdin.lock().await;
    let Some(sender) = stdin.as_mut() else {
        return Err(ApiError::conflict(format!(
            "the execution {id} takes no input, or its input was closed"
        )));
    };
    let written = tokio::select! {
        written = sender.write_all(bytes) => written.is_ok(),
        _ = running.child.wait() => false,
    };
    if eof || !written {
        *stdin = None;
    }
    if written {
        Ok(())
    } else {
        Err(ApiError::conflict(format!(
            "the execution {id} does not read its input any more"
        )))
    }
}

/// `POST /v1/processes/ID/cancel`.
pub(crate) fn cancel(
    workload: &Workload,
    registry: &Registry,
    id: ExecutionId,
    how: Cancel,
) -> Result<(), ApiError> {
    let running = registry.running(id)?;
    match how {
        Cancel::Interrupt => {
            running
                .asked
                .with(|asked| *asked = Asked::Interrupt.max(*asked));
            running.child.signal(Signal::INT);
        }
        Cancel::Kill => {
            running.asked.with(|asked| *asked = Asked::Kill);
            workload.kill(&running.child);
        }
    }
    Ok(())
}

/// Whole milliseconds since then.
pub(crate) fn milliseconds_since(then: Instant) -> u64 {
    u64::try_from(then.elapsed().as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::task::yield_now;

    use super::*;
    use crate::logs::Logs;

    #[tokio::test]
    async fn others_have_their_turn_beside_a_program_that_is_over_its_budget() {
        let (frames, _reader) = mpsc::channel(1);
        let log = Arc::new(Logs::new()).begin(ExecutionId::new());
        let sink = Arc::new(Sink::new(frames, Some(0), log));
        let (exited, exit_seen) = watch::channel(false);
        let endless = Pipe::endless(FrameKind::Stdout).await;
        let pumping = tokio::spawn(pump(endless, sink, exit_seen));
        yield_now().await;
        exited.send_replace(true);
        pumping.await.unwrap();
    }
}
