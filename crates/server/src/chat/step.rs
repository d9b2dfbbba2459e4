//! One step: code that runs in the thread's sandbox, with everything that people see of it.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ArtifactId, ExecutionId};
use glovebox_protocol::process::Cancel;
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{EndedWhy, ExecutionState, Lease, StoreError};

use super::failure;
use super::past::of_artifact;
use super::report::{Gathered, Verdict, verdict};
use super::sandbox;
use super::stage;
use super::turn::{StepReport, Turn, TurnError};
use crate::app::executions::Wish;
use crate::failure::chain;

/// How many events are read at once.
const READ: u32 = 500;

/// How long it is waited for events that another process may store.
const GLANCE: Duration = Duration::from_millis(250);

/// How long code may take to end after it was interrupted, and again after it was killed.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// How long it is waited before a gateway that is away is asked again.
const AGAIN: Duration = Duration::from_millis(100);

/// Runs code as a step, and tells its start and its end.
pub(super) async fn run(turn: &Turn, step: u32, code: &str) -> Result<StepReport, TurnError> {
    let begun = Instant::now();
    let reply = turn.reply();
    turn.tell(ThreadEventBody::StepStarted {
        reply,
        step,
        code: code.to_owned(),
    })
    .await?;
    let mut running = Step {
        turn,
        step,
        gathered: Gathered::default(),
        execution: None,
    };
    let ended = running.go(code).await;
    let verdict = match &ended {
        Ok(verdict) => verdict.clone(),
        Err(error) => given_up(error),
    };
    let (gathered, execution) = (running.gathered, running.execution);
    turn.tell(ThreadEventBody::StepEnded {
        reply,
        step,
        execution,
        is_success: verdict.is_success,
        summary: verdict.summary.clone(),
        fix: verdict.fix.clone(),
        duration_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    })
    .await?;
    ended.map(|verdict| gathered.report(step, verdict))
}

/// What is told of a step that could not run, or not to its end.
fn given_up(error: &TurnError) -> Verdict {
    let (summary, fix) = match error {
        TurnError::Refused(failure) => (failure.message.clone(), Some(failure.fix.clone())),
        TurnError::Stopped => ("was stopped".into(), None),
        TurnError::Store(error) => {
            let failure = failure::of_store(error);
            (failure.message, Some(failure.fix))
        }
    };
    Verdict {
        is_success: false,
        summary,
        fix,
    }
}

struct Step<'a> {
    turn: &'a Turn,
    step: u32,
    gathered: Gathered,
    execution: Option<ExecutionId>,
}

impl Step<'_> {
    async fn go(&mut self, code: &str) -> Result<Verdict, TurnError> {
        let turn = self.turn;
        let access = turn.access().await?;
        let ready = sandbox::ready(turn, &access, Some(self.step)).await?;
        let left_out = stage::stage(turn, &ready, self.step, code).await?;
        stage::note_replaced(turn, &ready).await?;
        self.gathered.notices.extend(turn.carried());
        self.gathered.notices.extend(left_out);
        if turn.is_stopped() {
            return Err(TurnError::Stopped);
        }
        let wish = Wish {
            code: code.to_owned(),
            time_limit_seconds: None,
            idempotency_key: None,
        };
        let lease = ready.lease;
        let started = turn.app.execute_in(&lease, ready.grant, wish).await;
        let id = started.map_err(failure::of_execution)?;
        self.execution = Some(id);
        let last = tokio::select! {
            last = self.follow(&lease, id) => last?,
            never = end_when_stopped(turn, &lease, id) => match never {},
        };
        if turn.is_stopped() {
            return Err(TurnError::Stopped);
        }
        match last {
            EventBody::ExecutionEnded(ended) => Ok(verdict(&ended.outcome, &ended.notes)),
            EventBody::SandboxGone { reason, .. } => {
                Err(TurnError::Refused(failure::gone(&reason)))
            }
            EventBody::Failed(body) if body.code == ErrorCode::Internal => Err(failure::refused(
                "internal",
                body.message,
                body.fix.unwrap_or_else(|| "try again".into()),
            )),
            EventBody::Failed(body) => Err(TurnError::Refused(failure::of_body(&body))),
            _ => Err(failure::refused(
                "internal",
                "the end of the code was not kept",
                "run it again",
            )),
        }
    }

    /// Tells what happens until the code has ended, and gives the last event.
    async fn follow(&mut self, lease: &Lease, id: ExecutionId) -> Result<EventBody, TurnError> {
        let app = &self.turn.app;
        let mut after = 0;
        loop {
            // In this order: an execution that has ended here has stored all its events before.
            let news = app.running().follow(id);
            let found = app.store().execution(lease.id, id).await?;
            let has_ended = found.is_none_or(|found| found.state == ExecutionState::Ended);
            let events = app.store().events(id, after, READ).await?;
            let is_last = has_ended && events.len() < READ as usize;
            let mut last = None;
            let mut told = Vec::with_capacity(events.len());
            for event in events {
                after = event.seq;
                self.gathered.take(&event.body);
                match event.body {
                    body @ (EventBody::ExecutionEnded(_)
                    | EventBody::SandboxGone { .. }
                    | EventBody::Failed(_)) => last = Some(body),
                    body => told.extend(self.as_told(body).await?),
                }
            }
            self.turn.tell_all(&told).await?;
            match last {
                Some(last) => return Ok(last),
                None if is_last => {
                    return Err(failure::refused(
                        "internal",
                        "the end of the code was not kept",
                        "run it again",
                    ));
                }
                None => {}
            }
            match news {
                // Either something is stored, or it is over.
                Some(mut news) => {
                    let _ = news.wait_for(|stored| *stored > after).await;
                }
                None => tokio::time::sleep_until((Instant::now() + GLANCE).into()).await,
            }
        }
    }

    /// What people in the thread are told of an event of an execution.
    async fn as_told(&mut self, event: EventBody) -> Result<Option<ThreadEventBody>, StoreError> {
        let (reply, step) = (self.turn.reply(), self.step);
        Ok(match event {
            EventBody::Artifact { saved_as, name, .. } => self.saved(&saved_as, &name).await?,
            EventBody::KernelReplaced { reason } => {
                let text = format!(
                    "A fresh kernel took the place of the last one ({reason}). Variables are gone; \
                     files are still there."
                );
                self.gathered.notices.push(text.clone());
                Some(ThreadEventBody::Notice {
                    reply: Some(reply),
                    code: "kernel_replaced".into(),
                    text,
                    fix: None,
                })
            }
            event => Some(ThreadEventBody::StepEvent { reply, step, event }),
        })
    }

    async fn saved(
        &mut self,
        id: &str,
        name: &FileName,
    ) -> Result<Option<ThreadEventBody>, StoreError> {
        let Ok(id) = id.parse::<ArtifactId>() else {
            return Ok(None);
        };
        let Some(artifact) = self.turn.app.store().artifact(id).await? else {
            return Ok(None);
        };
        self.gathered.files.push(of_artifact(&artifact));
        Ok(Some(ThreadEventBody::FileSaved {
            reply: Some(self.turn.reply()),
            step: Some(self.step),
            artifact: id,
            name: name.for_display(),
            version: u32::try_from(artifact.version).unwrap_or(u32::MAX),
            bytes: artifact.bytes,
            media_type: artifact.media_type,
            restored_version: None,
        }))
    }
}

/// Once the end of the reply is asked for: interrupts the code; where that does not help, kills the
/// kernel; where that does not help either, ends the sandbox. Never returns: the code's end is
/// seen by whoever follows its events.
async fn end_when_stopped(turn: &Turn, lease: &Lease, id: ExecutionId) -> Infallible {
    turn.stopped().await;
    let agent = turn.app.agent(lease.id);
    for how in [Cancel::Interrupt, Cancel::Kill] {
        let deadline = Instant::now() + END_PATIENCE;
        // Where its gateway is away it is asked again; code that has not begun is cancelled when it
        // does.
        while let Err(error) = agent.cancel_execute(id, how).await {
            if error.code() == Some(ErrorCode::Conflict) {
                // It has ended: what it saved is being collected, and its last event comes.
                return std::future::pending().await;
            }
            if Instant::now() > deadline {
                tracing::warn!(sandbox = %lease.id, error = chain(&error), "code was not ended");
                break;
            }
            tokio::time::sleep_until((Instant::now() + AGAIN).into()).await;
        }
        tokio::time::sleep_until(deadline.into()).await;
    }
    let detail = "its code did not end when it was asked to";
    let removed = turn
        .app
        .remove_sandbox(lease.id, EndedWhy::Asked, detail)
        .await;
    if let Err(error) = removed {
        tracing::warn!(sandbox = %lease.id, error = chain(&error), "a sandbox was not ended");
    }
    std::future::pending().await
}
