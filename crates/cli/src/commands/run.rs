//! `glovebox run`

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_runtime_embedded::{Afterwards, Options};
use tokio::task::spawn_blocking;

use crate::arguments::RunArguments;
use crate::environment::Environment;
use crate::failure::{Failure, shown};
use crate::installation::Installation;
use crate::output::OutputThread;
use crate::progress::Progress;
use crate::quantity::size;
use crate::run::{
    Audience, FAILED, Plan, Reporter, Sandbox, Session, Verdict, Wanted, end_launcher, from_client,
    work,
};
use crate::scope::Lack;
use crate::signals::Signals;
use crate::through::{Through, end as end_sandbox};

const MIB: u64 = 1024 * 1024;
const TIB: u64 = 1024 * 1024 * MIB;

/// How long a failed command waits until its last words are read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Runs a program in a sandbox and collects what it saves. Returns the exit status.
pub(crate) async fn run(
    arguments: &RunArguments,
    environment: &Environment,
    scope: Result<(), Lack>,
) -> u8 {
    let audience = match (arguments.json, arguments.quiet) {
        (true, _) => Audience::Program,
        (false, true) => Audience::QuietPerson,
        (false, false) => Audience::Person,
    };
    let progress = Arc::new(Progress::new(audience == Audience::Person));
    let mut reporter = Reporter::new(OutputThread::start(Arc::clone(&progress)), audience);
    let mut signals = match Signals::listen() {
        Ok(signals) => signals,
        Err(error) => {
            let failure = Failure::machine("listening to signals", error);
            return fail(reporter, failure).await;
        }
    };
    let mut session = Session::new(&mut reporter, &progress, &mut signals);
    let done = attempt(arguments, (environment, scope), &progress, &mut session).await;
    let (output_gone, lost) = (session.output_gone, session.lost.take());
    progress.done();
    let verdict = match done {
        // The program was killed for it; why nothing can be written comes out at the end.
        Ok(_) | Err(Failure::OutputGone) if output_gone => Verdict::FINE,
        Ok(verdict) => verdict,
        Err(failure) => return fail(reporter, failure).await,
    };
    let status = match (&lost, verdict.status) {
        // The program went well, but not everything that it made was brought out.
        (Some(_), 0) => FAILED,
        (_, status) => status,
    };
    // Whoever reads slowly may be told by a signal not to be waited for.
    let last_words = async {
        if let Some(line) = verdict.line {
            reporter.warning(line).await;
        }
        if let Some(failure) = lost {
            reporter.failed(&failure).await?;
        }
        reporter.finish().await
    };
    let written = tokio::select! {
        written = last_words => written,
        _ = signals.next() => Ok(()),
    };
    match written {
        Ok(()) => status,
        Err(Failure::OutputGone) => Failure::OutputGone.exit_status(),
        Err(failure) => {
            // Standard error may work where standard output does not.
            let _ = std::io::stderr().write_all(failure.for_person().as_bytes());
            failure.exit_status()
        }
    }
}

async fn fail(mut reporter: Reporter, failure: Failure) -> u8 {
    let status = failure.exit_status();
    let last_words = async {
        if !matches!(failure, Failure::OutputGone) {
            // A program that reads the events gets this one last; a person reads it in any case.
            let _ = reporter.failed(&failure).await;
        }
        let _ = reporter.finish().await;
    };
    // Whoever reads slowly, or was stopped, is not waited for.
    let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    status
}

async fn attempt(
    arguments: &RunArguments,
    (environment, scope): (&Environment, Result<(), Lack>),
    progress: &Arc<Progress>,
    session: &mut Session<'_>,
) -> Result<Verdict, Failure> {
    let limits = limits(arguments, session).await;
    let plan = Plan::of(arguments)?;
    plan.inputs.check(&InputLimits::default())?;
    check_room(&plan, &limits)?;
    for path in &plan.inputs.skipped {
        let line = format!(
            "left outside {}: it is a link or no regular file",
            shown(path)
        );
        session.warn(line).await?;
    }
    match Through::of(&arguments.through)? {
        None => {
            here(
                arguments,
                (environment, scope),
                &plan,
                limits,
                progress,
                session,
            )
            .await
        }
        Some(through) => elsewhere(arguments, &through, &plan, limits, progress, session).await,
    }
}

/// On this machine, with a launcher that ends with this command.
async fn here(
    arguments: &RunArguments,
    (environment, scope): (&Environment, Result<(), Lack>),
    plan: &Plan,
    limits: Limits,
    progress: &Arc<Progress>,
    session: &mut Session<'_>,
) -> Result<Verdict, Failure> {
    let wanted = Wanted::here(limits, arguments.timeout)?;
    if let Err(lack) = scope
        && let Some(refusal) = lack.refusal(&arguments.accept_weaker)
    {
        return Err(refusal);
    }
    let installation = Installation::find()?;
    let data = environment.data_folder(arguments.data.as_deref())?;
    let options = Options {
        layers: tree(&installation, &data, environment, progress, session).await?,
        launcher: installation.launcher,
        data,
        run: environment.run_folder()?,
        installation: wanted.installation(),
        root_range_start: DEFAULT_ROOT_RANGE_START,
        accept_weaker: arguments.accept_weaker.clone(),
        afterwards: Afterwards::TheyEnd,
    };
    progress.phase("starting the sandbox");
    let begun = Instant::now();
    let sandbox = wanted.id();
    let launching = Sandbox::launcher(options);
    let runtime = session
        .until_stopped("starting the sandbox", launching)
        .await?;
    let worked = async {
        // Only what is really missing is told, not all that would have been accepted.
        let weaker = runtime.facts().weaker.iter();
        let starting = EventBody::SandboxStarting {
            sandbox,
            accepted_weaker: weaker.map(ToString::to_string).collect(),
        };
        session.tell(starting).await?;
        let making = Sandbox::make(&runtime, wanted);
        let made = session
            .until_stopped("starting the sandbox", making)
            .await?;
        work_in(&made, begun, arguments, plan, session).await
    }
    .await;
    progress.phase("cleaning up");
    let ended = session.clean_up(end_launcher(&runtime)).await;
    let verdict = worked?;
    ended.map(|()| verdict)
}

/// Behind a gateway.
async fn elsewhere(
    arguments: &RunArguments,
    through: &Through,
    plan: &Plan,
    limits: Limits,
    progress: &Arc<Progress>,
    session: &mut Session<'_>,
) -> Result<Verdict, Failure> {
    progress.phase("starting the sandbox");
    let begun = Instant::now();
    let asking = async {
        let installation = through.client.installation().await;
        installation.map_err(|error| from_client("asking the gateway", error))
    };
    let installation = session
        .until_stopped("starting the sandbox", asking)
        .await?;
    let key = Arc::clone(&through.key);
    let wanted = Wanted::new(limits, arguments.timeout, installation, key)?;
    let sandbox = wanted.id();
    let worked = async {
        let starting = EventBody::SandboxStarting {
            sandbox,
            accepted_weaker: Vec::new(),
        };
        session.tell(starting).await?;
        let making = Sandbox::make_through(through, wanted);
        let made = session
            .until_stopped("starting the sandbox", making)
            .await?;
        work_in(&made, begun, arguments, plan, session).await
    }
    .await;
    progress.phase("cleaning up");
    let ended = session
        .clean_up(end_sandbox(&through.client, sandbox))
        .await;
    let verdict = worked?;
    ended.map(|()| verdict)
}

async fn work_in(
    made: &Sandbox,
    begun: Instant,
    arguments: &RunArguments,
    plan: &Plan,
    session: &mut Session<'_>,
) -> Result<Verdict, Failure> {
    let ready = EventBody::SandboxReady {
        sandbox: made.id,
        after_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
    };
    session.tell(ready).await?;
    let env: BTreeMap<_, _> = arguments.env.iter().cloned().collect();
    work(session, made, plan, &env, arguments.timeout).await
}

/// The limits that were asked for.
async fn limits(arguments: &RunArguments, session: &Session<'_>) -> Limits {
    let mut limits = Limits::of(arguments.class);
    if let Some(memory) = arguments.memory {
        limits.memory_bytes = memory;
    }
    if let Some(disk) = arguments.disk {
        limits.workspace_bytes = disk;
    }
    // A file that outgrows the workspace or `/tmp` is to meet their size, which is told with what
    // can be done, before it meets a limit of its own, for which a program is killed.
    let largest = limits.workspace_bytes.saturating_add(MIB).min(TIB);
    limits.file_size_bytes = limits.file_size_bytes.max(largest);
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let millis = u32::try_from(cpus).unwrap_or(u32::MAX).saturating_mul(1000);
    if limits.cpu_millis > millis {
        let line = format!(
            "class {} has {} CPUs; this machine gives {cpus}",
            arguments.class,
            limits.cpu_millis / 1000
        );
        session.reporter.note(line).await;
        limits.cpu_millis = millis;
    }
    limits
}

fn check_room(plan: &Plan, limits: &Limits) -> Result<(), Failure> {
    let total = plan.inputs.total_bytes();
    if total <= limits.workspace_bytes {
        return Ok(());
    }
    Err(Failure::Input {
        problem: format!(
            "the inputs have {} together; the workspace has {}",
            size(total),
            size(limits.workspace_bytes)
        ),
        fix: Some("make more room with --disk".into()),
        cause: None,
    })
}

/// Makes sure of the tree that the sandbox stands on.
async fn tree(
    installation: &Installation,
    data: &std::path::Path,
    environment: &Environment,
    progress: &Arc<Progress>,
    session: &mut Session<'_>,
) -> Result<Vec<String>, Failure> {
    progress.phase("looking at the tree");
    let setting_up = {
        let (installation, data) = (installation.clone(), data.to_owned());
        let (environment, progress) = (environment.clone(), Arc::clone(progress));
        spawn_blocking(move || installation.ensure_tree(&data, &environment, progress))
    };
    let joined = async {
        setting_up
            .await
            .map_err(|error| Failure::machine("setting up the tree", error))?
    };
    let (trees, told) = session.until_stopped("setting up", joined).await?;
    for note in told.notes {
        session.reporter.note(format!("note: {note}")).await;
    }
    Ok(trees.layers)
}
