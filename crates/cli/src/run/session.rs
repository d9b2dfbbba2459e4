//! What all steps of a run share: the agent, the person or program that is told, the signals.

use std::future::Future;
use std::pin::pin;

use glovebox_client::{AgentClient, Execution};
use glovebox_protocol::event::{Ended, EventBody};
use glovebox_protocol::process::Cancel;

use super::report::Reporter;
use super::sandbox::{Sandbox, from_client};
use crate::failure::Failure;
use crate::progress::{Progress, TICK};
use crate::signals::{Signals, Stop};

/// What all steps of a run share.
pub(crate) struct Session<'a> {
    /// Tells what happens.
    pub(crate) reporter: &'a mut Reporter,
    /// Says what is being done.
    pub(crate) progress: &'a Progress,
    /// Ctrl-C and its kin.
    pub(crate) signals: &'a mut Signals,
    /// Whether nobody reads the output any more.
    pub(crate) output_gone: bool,
    /// How often Ctrl-C was pressed while a program ran.
    pub(crate) interrupts: u32,
}

/// What runs, and so what a signal goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A process.
    Process,
    /// The kernel.
    Kernel,
}

/// How a stream of events came to its end.
pub(crate) enum Followed {
    /// With the execution.
    Ended(Ended),
    /// With the sandbox, and why that ended.
    Gone(String),
}

impl<'a> Session<'a> {
    /// Nothing has happened yet.
    pub(crate) fn new(
        reporter: &'a mut Reporter,
        progress: &'a Progress,
        signals: &'a mut Signals,
    ) -> Self {
        Self {
            reporter,
            progress,
            signals,
            output_gone: false,
            interrupts: 0,
        }
    }

    /// Does something that a signal may stop, and keeps the progress line alive.
    pub(crate) async fn until_stopped<T>(
        &mut self,
        doing: &str,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let mut work = pin!(work);
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                done = &mut work => return done,
                stop = self.signals.next() => return Err(stopped(doing, stop)),
                _ = ticks.tick() => self.progress.tick(),
            }
        }
    }

    /// Tells an event. That nobody reads the output is remembered, not an error: the program
    /// is to be ended in order, and what it saved is still collected.
    pub(crate) async fn tell(&mut self, event: EventBody) -> Result<(), Failure> {
        match self.reporter.event(event).await {
            Err(Failure::OutputGone) => {
                self.output_gone = true;
                Ok(())
            }
            told => told,
        }
    }

    /// Follows an execution to its end: tells its events, passes signals on, and kills it when
    /// nobody reads its output any more. `seen` is called with each event first.
    pub(crate) async fn follow(
        &mut self,
        sandbox: &Sandbox,
        mut execution: Execution,
        target: Target,
        mut seen: impl FnMut(&EventBody),
    ) -> Result<Followed, Failure> {
        let id = execution.id();
        let mut ticks = tokio::time::interval(TICK);
        let mut killed_for_output = false;
        loop {
            let reporter = &mut *self.reporter;
            // One step is one future, kept until it is through: a slow reader of the output
            // must not keep signals from being heard, and no event may be lost to one.
            let step = async {
                let event = match execution.next().await {
                    Ok(Some(event)) => event,
                    Ok(None) => return Ok((Step::Gone, false)),
                    Err(error) if error.is_gone() => return Ok((Step::Gone, false)),
                    Err(error) => return Err(from_client("following the program", error)),
                };
                seen(&event);
                let step = match &event {
                    EventBody::ExecutionEnded(ended) => Step::Ended(ended.clone()),
                    EventBody::Failed(body) => {
                        return Err(from_client(
                            "running the program",
                            glovebox_client::ClientError::Refused(Box::new(body.clone())),
                        ));
                    }
                    _ => Step::More,
                };
                match reporter.event(event).await {
                    Err(Failure::OutputGone) => Ok((step, true)),
                    told => told.map(|()| (step, false)),
                }
            };
            let mut step = pin!(step);
            let (step, output_gone) = loop {
                tokio::select! {
                    done = &mut step => break done?,
                    stop = self.signals.next() => {
                        self.interrupts += 1;
                        let how = match (stop, self.interrupts) {
                            (Stop::Interrupt, 1) => Cancel::Interrupt,
                            (Stop::Interrupt, 2) => Cancel::Kill,
                            _ => return Err(stopped("running the program", stop)),
                        };
                        cancel(&sandbox.client, target, id, how).await;
                    }
                    _ = ticks.tick() => self.progress.tick(),
                }
            };
            match step {
                Step::Ended(ended) => return Ok(Followed::Ended(ended)),
                Step::Gone => return Ok(Followed::Gone(sandbox.why_gone().await)),
                Step::More => {}
            }
            if output_gone && !killed_for_output {
                killed_for_output = true;
                self.output_gone = true;
                cancel(&sandbox.client, target, id, Cancel::Kill).await;
            }
        }
    }
}

enum Step {
    More,
    Ended(Ended),
    Gone,
}

/// Asks for the program's end. Whether it helped, the program's events say.
async fn cancel(
    client: &AgentClient,
    target: Target,
    execution: glovebox_protocol::ids::ExecutionId,
    how: Cancel,
) {
    let _ = match target {
        Target::Process => client.cancel(execution, how).await,
        Target::Kernel => client.interrupt_kernel(how).await,
    };
}

fn stopped(doing: &str, stop: Stop) -> Failure {
    Failure::Stopped {
        doing: doing.into(),
        signal: stop.number(),
    }
}
