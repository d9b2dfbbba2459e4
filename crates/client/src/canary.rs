//! The canary: a throwaway sandbox tries to reach what it must not, and says what came of it.
//!
//! The gateway names the targets and opens its own; a second sandbox opens one too. Here the
//! attempts are run and their results brought into a report. Nothing is concluded: the report says
//! for each target what came of it, and [`CanaryReport::wrong`] which came out otherwise than they
//! have to.

mod starts;
mod throwaway;

pub use throwaway::prove;

use std::collections::BTreeMap;
use std::time::Duration;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::gateway::{
    CanaryPlan, CanaryReport, CanaryResult, CanaryTarget, Expected, Reach,
};
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::{Execute, StartKernel};
use glovebox_protocol::process::StartProcess;
use tokio::time::timeout;

use crate::exchange::now_ms;
use crate::{AgentClient, ClientError, Execution};

/// What is run inside of a sandbox.
const CODE: &str = include_str!("canary.py");

/// The target that the second sandbox opens.
const OTHER: &str = "other_sandbox";

/// Longest output of all attempts together, in bytes.
const MAX_OUTPUT: usize = 256 * 1024;

/// How long a Python may take to start, beside what it does.
const START_PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// An agent or the gateway could not be talked to, or refused.
    #[error("talking to a throwaway sandbox or to its gateway")]
    Client(#[from] ClientError),
    /// The second sandbox did not open what the first one is to try.
    #[error("the second sandbox opened nothing to be reached: {said}")]
    NotOpened {
        /// What it said instead.
        said: String,
    },
    /// The attempts were broken off, or one has no result.
    #[error("the canary's attempts came to no result for `{id}`: {said}")]
    NoResult {
        /// Which target's is missing.
        id: String,
        /// What was said instead.
        said: String,
    },
    /// The gateway's own targets were closed before the attempts were over.
    #[error("the gateway had closed its own targets before all were tried")]
    Late,
    /// The plan has nothing that shows whether the attempts are real ones.
    #[error("the gateway's plan has no positive control")]
    NoControl,
    /// The kernel that was to be a copy of a template is something else.
    #[error("the sandbox's kernel is no copy of a template")]
    NoCopy,
    /// The attempts took too long.
    #[error("the canary's attempts did not end in time")]
    Slow,
}

/// Lets a program in the sandbox of `subject` try every target of a plan, while that of `other`
/// opens the one that is between two sandboxes.
///
/// Both have to be throwaway ones of the kind that people's code gets.
///
/// # Errors
/// When there is no result for every target. That is no pass.
pub async fn run(
    plan: &CanaryPlan,
    subject: &AgentClient,
    other: &AgentClient,
) -> Result<CanaryReport, CanaryError> {
    let opened = open(plan, other).await?;
    let report = run_in(plan, subject, Start::Fresh).await;
    // Until here the second sandbox has listened.
    drop(opened);
    report
}

/// Tries every target in the place that this start is about: in a program, or in the kernel that is
/// a copy.
async fn run_in(
    plan: &CanaryPlan,
    subject: &AgentClient,
    start: Start,
) -> Result<CanaryReport, CanaryError> {
    let has_control = |target: &CanaryTarget| {
        target.expected == Expected::Open && matches!(target.reach, Reach::OwnSocket)
    };
    if !plan.targets.iter().any(has_control) {
        return Err(CanaryError::NoControl);
    }
    let count = u64::try_from(plan.targets.len()).unwrap_or(u64::MAX);
    let limit = Duration::from_millis(plan.attempt_limit_ms.saturating_mul(count));
    let patience = limit.saturating_add(START_PATIENCE);
    let targets = serde_json::to_string(&plan.targets).map_err(ClientError::Answer)?;
    let limit_ms = plan.attempt_limit_ms.to_string();
    let words = ["attempt", &limit_ms, &targets];
    let said = async {
        let mut execution = match start {
            Start::Fresh => subject.run(&program(&words, patience)).await?,
            Start::Template => in_copy(subject, &words, patience).await?,
        };
        read(&mut execution, |_| false).await
    };
    let said = timeout(patience, said)
        .await
        .map_err(|_| CanaryError::Slow)??;
    // An attempt at what is not there any more shows nothing.
    if now_ms() >= plan.open_until_ms {
        return Err(CanaryError::Late);
    }
    report(plan, &said, start)
}

/// Has a kernel that is a copy of a template do what a program would.
async fn in_copy(
    subject: &AgentClient,
    words: &[&str],
    limit: Duration,
) -> Result<Execution, CanaryError> {
    let kernel = StartKernel {
        start_limit_ms: 0,
        env: BTreeMap::new(),
    };
    if subject.start_kernel(&kernel).await?.start != Some(Start::Template) {
        return Err(CanaryError::NoCopy);
    }
    // A text as it is written here is a text of Python's too.
    let code = serde_json::to_string(CODE).map_err(ClientError::Answer)?;
    let words = serde_json::to_string(words).map_err(ClientError::Answer)?;
    let execute = Execute {
        execution: ExecutionId::new(),
        code: format!(
            "canary = {{'__name__': 'canary'}}\nexec({code}, canary)\ncanary['main']({words})"
        ),
        time_limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        output_limit_bytes: MAX_OUTPUT as u64,
        silent: false,
    };
    Ok(subject.execute(&execute).await?)
}

fn name_of_other(plan: &CanaryPlan) -> Option<&str> {
    plan.targets.iter().find_map(|target| match &target.reach {
        Reach::AbstractSocket { name } if target.id == OTHER => Some(name.as_str()),
        _ => None,
    })
}

/// Opens a socket in the second sandbox, where the plan has one. Dropping what is returned closes it.
async fn open(plan: &CanaryPlan, other: &AgentClient) -> Result<Option<Execution>, CanaryError> {
    let Some(name) = name_of_other(plan) else {
        return Ok(None);
    };
    let start = program(&["listen", name], Duration::from_secs(600));
    let opening = async {
        let mut execution = other.run(&start).await?;
        let said = read(&mut execution, |said| said.ends_with('\n')).await?;
        Ok::<_, CanaryError>((execution, said))
    };
    let (execution, said) = timeout(START_PATIENCE, opening)
        .await
        .map_err(|_| CanaryError::Slow)??;
    if said.trim() == "ready" {
        Ok(Some(execution))
    } else {
        let said = shown(&said);
        Err(CanaryError::NotOpened { said })
    }
}

fn program(arguments: &[&str], limit: Duration) -> StartProcess {
    let argv = ["python3", "-I", "-c", CODE];
    StartProcess {
        execution: ExecutionId::new(),
        argv: argv
            .iter()
            .chain(arguments)
            .map(|word| (*word).into())
            .collect(),
        env: BTreeMap::new(),
        stdin: Default::default(),
        time_limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
        output_limit_bytes: Some(MAX_OUTPUT as u64),
    }
}

/// What a program says, to its end or until it has said enough; its complaints are in it too.
async fn read(
    execution: &mut Execution,
    is_enough: impl Fn(&str) -> bool,
) -> Result<String, CanaryError> {
    let mut said = Vec::new();
    while let Some(event) = execution.next().await? {
        if let EventBody::Stdout(output) | EventBody::Stderr(output) = event {
            let room = MAX_OUTPUT.saturating_sub(said.len());
            said.extend_from_slice(output.0.get(..room).unwrap_or(&output.0));
            if is_enough(&String::from_utf8_lossy(&said)) {
                break;
            }
        }
    }
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Brings lines of results into the order of the plan. What is no result is left out, and so
/// shows by its absence.
fn report(plan: &CanaryPlan, said: &str, start: Start) -> Result<CanaryReport, CanaryError> {
    let mut found: BTreeMap<String, CanaryResult> = said
        .lines()
        .filter_map(|line| serde_json::from_str::<CanaryResult>(line).ok())
        .map(|result| (result.id.clone(), result))
        .collect();
    let result_of = |target: &CanaryTarget| {
        found
            .remove(&target.id)
            .map(|mut result| {
                // It came out of a sandbox, which does not know what it is.
                result.how = shown(&result.how);
                result.start = start;
                (target.clone(), result)
            })
            .ok_or_else(|| CanaryError::NoResult {
                id: target.id.clone(),
                said: shown(said),
            })
    };
    Ok(CanaryReport {
        results: plan
            .targets
            .iter()
            .map(result_of)
            .collect::<Result<_, _>>()?,
    })
}

fn shown(said: &str) -> String {
    let end: String = said.trim().chars().take(500).collect();
    glovebox_protocol::file::escape_for_display(end.as_bytes())
}
