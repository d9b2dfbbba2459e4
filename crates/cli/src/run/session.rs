//! What all steps of a run share: the agent, the person or program that is told, the signals.

use std::future::Future;
use std::pin::{Pin, pin};
use std::time::Duration;

use glovebox_client::{AgentClient, ClientError, Execution};
use glovebox_protocol::event::{Ended, EventBody};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::Cancel;

use super::report::Reporter;
use super::sandbox::{Sandbox, from_client};
use crate::failure::Failure;
use crate::progress::{Progress, TICK};
use crate::signals::{Signals, Stop};

/// How long the agent may take to pass a signal on.
const PASSING_ON: Duration = Duration::from_secs(15);

/// How long the launcher may take to clean up.
const CLEANING_UP: Duration = Duration::from_secs(15);

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
    /// The first failure that something was lost to. The run goes on, and says so at its end.
    pub(crate) lost: Option<Failure>,
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
    /// With a failure of the agent's. The sandbox may still be there, with what was saved in it.
    Lost(Failure),
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
            lost: None,
        }
    }

    /// Takes down that something was lost, which neither ends the run nor is forgotten.
    pub(crate) fn lose(&mut self, failure: Failure) {
        self.lost.get_or_insert(failure);
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

    /// Goes on after a failure that loses only a part, but not after a signal.
    pub(crate) fn survive<T>(&mut self, done: Result<T, Failure>) -> Result<Option<T>, Failure> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(stopped @ Failure::Stopped { .. }) => Err(stopped),
            Err(failure) => {
                self.lose(failure);
                Ok(None)
            }
        }
    }

    /// Waits until the launcher has cleaned up, but not for ever, and not against the person's
    /// will: it also cleans up once this command has ended.
    pub(crate) async fn clean_up(
        &mut self,
        work: impl Future<Output = Result<(), Failure>>,
    ) -> Result<(), Failure> {
        match tokio::time::timeout(CLEANING_UP, self.until_stopped("cleaning up", work)).await {
            Ok(done) => done,
            Err(_) => Err(Failure::machine(
                "cleaning up",
                format!(
                    "the launcher has not ended within {} s",
                    CLEANING_UP.as_secs()
                ),
            )),
        }
    }

    /// Tells an event. That nobody reads the output is remembered, not an error: the program
    /// is to be ended in order, and what it saved is still collected.
    pub(crate) async fn tell(&mut self, event: EventBody) -> Result<(), Failure> {
        let told = tokio::select! {
            told = self.reporter.event(event) => told,
            stop = self.signals.next() => return Err(stopped("writing the output", stop)),
        };
        match told {
            Err(Failure::OutputGone) => {
                self.output_gone = true;
                Ok(())
            }
            told => told,
        }
    }

    /// Tells a person what went wrong without ending the run.
    pub(crate) async fn warn(&mut self, line: String) -> Result<(), Failure> {
        tokio::select! {
            () = self.reporter.warning(line) => Ok(()),
            stop = self.signals.next() => Err(stopped("writing the output", stop)),
        }
    }

    /// Starts an execution and follows it to its end: tells its events, passes signals on, and
    /// kills it when nobody reads its output any more. `seen` is called with each event first.
    pub(crate) async fn follow(
        &mut self,
        sandbox: &Sandbox,
        starting: (&str, impl Future<Output = Result<Execution, ClientError>>),
        target: Target,
        mut seen: impl FnMut(&EventBody),
    ) -> Result<Followed, Failure> {
        let (doing, starting) = starting;
        let starting = async { Ok(starting.await) };
        let mut execution = match self.until_stopped(doing, starting).await? {
            Ok(execution) => execution,
            Err(error) if error.is_gone() => return self.gone(sandbox).await,
            Err(error) => return Ok(Followed::Lost(from_client(doing, error))),
        };
        let id = execution.id();
        let mut ticks = tokio::time::interval(TICK);
        // What the agent was asked last: waited for beside everything else, so that neither
        // output nor a further signal waits for it.
        let mut asking: Option<Asking<'_>> = None;
        let mut killed_for_output = false;
        loop {
            let (step, output_gone) = {
                // One step is one future, kept until it is through: a slow reader of the output
                // must not keep signals from being heard, and no event may be lost to one.
                let mut step = pin!(next_step(&mut execution, self.reporter, &mut seen));
                loop {
                    tokio::select! {
                        done = &mut step => break done?,
                        answered = answer_of(&mut asking) => {
                            asking = None;
                            answered?;
                        }
                        stop = self.signals.next() => {
                            self.interrupts += 1;
                            let how = match (stop, self.interrupts) {
                                (Stop::Interrupt, 1) => Cancel::Interrupt,
                                (Stop::Interrupt, 2) => Cancel::Kill,
                                _ => return Err(stopped("running the program", stop)),
                            };
                            asking = Some(Box::pin(ask(&sandbox.client, target, id, how)));
                        }
                        _ = ticks.tick() => self.progress.tick(),
                    }
                }
            };
            match step {
                Step::Ended(ended) => return Ok(Followed::Ended(ended)),
                Step::Gone => return self.gone(sandbox).await,
                // Dropping the execution tells the agent to end it.
                Step::Lost(failure) => return Ok(Followed::Lost(failure)),
                Step::More => {}
            }
            if output_gone && !killed_for_output {
                killed_for_output = true;
                self.output_gone = true;
                asking = Some(Box::pin(ask(&sandbox.client, target, id, Cancel::Kill)));
            }
        }
    }

    async fn gone(&mut self, sandbox: &Sandbox) -> Result<Followed, Failure> {
        let asking = async { Ok(sandbox.why_gone().await) };
        let reason = self
            .until_stopped("asking why the sandbox has ended", asking)
            .await?;
        Ok(Followed::Gone(reason))
    }
}

enum Step {
    More,
    Ended(Ended),
    Gone,
    Lost(Failure),
}

/// Takes in and tells one event. Also says whether nobody reads the output any more.
async fn next_step(
    execution: &mut Execution,
    reporter: &mut Reporter,
    seen: &mut impl FnMut(&EventBody),
) -> Result<(Step, bool), Failure> {
    let lost = |error| {
        Ok((
            Step::Lost(from_client("following the program", error)),
            false,
        ))
    };
    let event = match execution.next().await {
        Ok(Some(EventBody::Failed(body))) => return lost(ClientError::Refused(Box::new(body))),
        Ok(Some(event)) => event,
        Ok(None) => return Ok((Step::Gone, false)),
        Err(error) if error.is_gone() => return Ok((Step::Gone, false)),
        Err(error) => return lost(error),
    };
    seen(&event);
    let step = match &event {
        EventBody::ExecutionEnded(ended) => Step::Ended(ended.clone()),
        _ => Step::More,
    };
    match reporter.event(event).await {
        Err(Failure::OutputGone) => Ok((step, true)),
        told => told.map(|()| (step, false)),
    }
}

/// The agent was asked for the program's end, and has not answered yet.
type Asking<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

/// Asks for the program's end. Whether it helped, the program's events say; only an agent that
/// does not answer at all is a failure.
async fn ask(
    client: &AgentClient,
    target: Target,
    execution: ExecutionId,
    how: Cancel,
) -> Result<(), Failure> {
    let asking = async {
        let _ = match target {
            Target::Process => client.cancel(execution, how).await,
            Target::Kernel => client.interrupt_kernel(how).await,
        };
    };
    tokio::time::timeout(PASSING_ON, asking).await.map_err(|_| {
        let seconds = PASSING_ON.as_secs();
        Failure::machine(
            "ending the program",
            format!("its agent has not answered for {seconds} s"),
        )
    })
}

async fn answer_of(asking: &mut Option<Asking<'_>>) -> Result<(), Failure> {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

fn stopped(doing: &str, stop: Stop) -> Failure {
    Failure::Stopped {
        doing: doing.into(),
        signal: stop.number(),
    }
}

#[cfg(test)]
mod tests;
