//! Running a program in a sandbox of its own: what goes in, what happens, what comes out.

mod cells;
mod collect;
#[cfg(test)]
mod hostile;
mod inputs;
mod process;
mod program;
mod report;
mod results;
mod safe_name;
mod sandbox;
mod session;
mod stage;
mod stdin;
mod verdict;

pub(crate) use report::{Audience, Reporter};
pub(crate) use sandbox::{Sandbox, Wanted, end as end_launcher, from_client};
pub(crate) use session::Session;
pub(crate) use verdict::{FAILED, Verdict};

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use glovebox_protocol::file::FileName;

use crate::arguments::RunArguments;
use crate::failure::{Failure, shown};
use crate::notebook::{Notebook, Outputs};
use inputs::Inputs;
use program::Program;
use results::Results;

/// The media type of a notebook.
const NOTEBOOK: &str = "application/x-ipynb+json";

/// What is to be done, with everything that can be looked at beforehand looked at.
#[derive(Debug)]
pub(crate) struct Plan {
    program: Program,
    /// The files that go in.
    pub(crate) inputs: Inputs,
    results: Results,
}

impl Plan {
    /// Reads it from the command line.
    pub(crate) fn of(arguments: &RunArguments) -> Result<Self, Failure> {
        let (program, inputs) = program::plan(arguments)?;
        Ok(Self {
            program,
            inputs,
            results: Results::at(&arguments.out)?,
        })
    }
}

/// Copies in, runs, collects.
pub(crate) async fn work(
    session: &mut Session<'_>,
    sandbox: &Sandbox,
    plan: &Plan,
    env: &BTreeMap<String, String>,
    time_limit: Duration,
) -> Result<Verdict, Failure> {
    stage::stage(session, &sandbox.client, &plan.inputs).await?;
    let verdict = match &plan.program {
        Program::Process(process) => {
            process::run(session, sandbox, process, env, time_limit).await?
        }
        Program::Notebook { notebook, path } => {
            let called = plan.program.called();
            let (verdict, outputs) =
                cells::run(session, sandbox, (notebook, &called), env, time_limit).await?;
            let saved = save_notebook(session, &plan.results, (notebook, path), &outputs).await;
            session.survive(saved)?;
            verdict
        }
    };
    // What a sandbox that is gone held is gone with it.
    if !verdict.sandbox_gone {
        collect::collect(session, &sandbox.client, &plan.results).await?;
    }
    Ok(verdict)
}

async fn save_notebook(
    session: &mut Session<'_>,
    results: &Results,
    notebook: (&Notebook, &Path),
    outputs: &Outputs,
) -> Result<(), Failure> {
    let (notebook, path) = notebook;
    let base = path.file_name().unwrap_or(path.as_os_str());
    let name = FileName::from_bytes(base.as_bytes())
        .map_err(|error| Failure::input(format!("cannot save {}", shown(path)), error))?;
    let mut draft = results.draft()?;
    notebook
        .write_with(outputs, &mut draft)
        .map_err(|error| match draft.take_fault() {
            Some(fault) => fault,
            None => Failure::machine(format!("saving {name}"), error),
        })?;
    let (bytes, digest) = draft.written();
    let saved = draft.publish(&name)?;
    let event = collect::saved_event(&saved, name, bytes, digest, NOTEBOOK.into());
    session.tell(event).await
}
