//! Runs a notebook, cell by cell, in a kernel.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use glovebox_protocol::event::{Ended, EventBody, Outcome};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::{Execute, StartKernel};

use super::report::dropped;
use super::sandbox::{Sandbox, from_client};
use super::session::{Followed, Session, Target};
use super::verdict::Verdict;
use crate::failure::Failure;
use crate::notebook::{CodeCell, Notebook, Outputs};

/// A notebook that is being run.
struct Run<'a> {
    sandbox: &'a Sandbox,
    called: &'a str,
    outputs: Outputs,
    /// Which cell an execution was of, for output that comes late.
    cells: HashMap<ExecutionId, usize>,
    deadline: Instant,
    time_limit: Duration,
}

/// Runs all cells until one fails. Returns how it went and the outputs, those of a run that was
/// cut short too.
pub(crate) async fn run(
    session: &mut Session<'_>,
    sandbox: &Sandbox,
    notebook: (&Notebook, &str),
    env: &BTreeMap<String, String>,
    time_limit: Duration,
) -> Result<(Verdict, Outputs), Failure> {
    let (notebook, called) = notebook;
    let mut run = Run {
        sandbox,
        called,
        outputs: Outputs::default(),
        cells: HashMap::new(),
        deadline: Instant::now() + time_limit,
        time_limit,
    };
    session
        .progress
        .phase(format!("running {called}, starting the kernel"));
    let start = StartKernel {
        env: env.clone(),
        ..StartKernel::default()
    };
    let starting = async {
        let started = sandbox.client.start_kernel(&start).await;
        started.map_err(|error| from_client("starting the kernel", error))
    };
    session
        .until_stopped("starting the kernel", starting)
        .await?;
    let cells = notebook.code_cells();
    let of = u32::try_from(cells.len()).unwrap_or(u32::MAX);
    for (number, cell) in (1..).zip(&cells) {
        session
            .progress
            .say(format!("running {called}, cell {number} of {of}"));
        session.tell(EventBody::CellStarted { number, of }).await?;
        let verdict = run.cell(session, cell).await?;
        if verdict.status != 0 || session.output_gone {
            return Ok((verdict, run.outputs));
        }
    }
    Ok((Verdict::FINE, run.outputs))
}

impl Run<'_> {
    async fn cell(
        &mut self,
        session: &mut Session<'_>,
        cell: &CodeCell,
    ) -> Result<Verdict, Failure> {
        self.outputs.begin(cell.index);
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left_ms = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
        if left_ms == 0 {
            return Ok(self.out_of_time(false));
        }
        let execute = Execute {
            execution: ExecutionId::new(),
            code: cell.source.clone(),
            time_limit_ms: left_ms,
            output_limit_bytes: Execute::default_output_limit_bytes(),
            silent: false,
        };
        self.cells.insert(execute.execution, cell.index);
        match self.execute(session, &execute).await? {
            Followed::Ended(ended) => Ok(self.verdict(session, &ended, cell)),
            Followed::Gone(reason) => Ok(Verdict::gone(self.called, &reason)),
            Followed::Lost(failure) => {
                session.lose(failure);
                Ok(Verdict::LOST)
            }
        }
    }

    async fn execute(
        &mut self,
        session: &mut Session<'_>,
        execute: &Execute,
    ) -> Result<Followed, Failure> {
        let sandbox = self.sandbox;
        let starting = ("running a cell", sandbox.client.execute(execute));
        let (outputs, cells) = (&mut self.outputs, &self.cells);
        let mut full = None;
        let seen = |event: &EventBody| match event {
            EventBody::LateOutput {
                execution, output, ..
            } => {
                if let Some(cell) = cells.get(execution) {
                    full = outputs.take_late(*cell, &output.0).or(full.take());
                }
            }
            EventBody::OutputDropped {
                dropped_bytes,
                limit_bytes,
            } => {
                outputs.add_note(&dropped(*dropped_bytes, *limit_bytes));
            }
            event => full = outputs.take(event).or(full.take()),
        };
        let followed = session
            .follow(sandbox, starting, Target::Kernel, seen)
            .await?;
        if let Some(note) = full {
            session.warn(note).await?;
        }
        Ok(followed)
    }

    fn verdict(&mut self, session: &Session<'_>, ended: &Ended, cell: &CodeCell) -> Verdict {
        match &ended.outcome {
            Outcome::Succeeded { execution_count } => {
                self.outputs.set_count(*execution_count);
                Verdict::FINE
            }
            Outcome::Raised {
                execution_count, ..
            } => {
                self.outputs.set_count(*execution_count);
                if session.interrupts > 0 {
                    return Verdict::of(&Outcome::Cancelled { killed: false }, self.called);
                }
                if cell.may_raise {
                    return Verdict::FINE;
                }
                Verdict::of(&ended.outcome, self.called)
            }
            // The limit that people know is that of the whole notebook.
            Outcome::TimeLimit { killed, .. } => self.out_of_time(*killed),
            other => Verdict::of(other, self.called),
        }
    }

    fn out_of_time(&self, killed: bool) -> Verdict {
        let limit_ms = u64::try_from(self.time_limit.as_millis()).unwrap_or(u64::MAX);
        Verdict::of(&Outcome::TimeLimit { limit_ms, killed }, self.called)
    }
}
