//! `glovebox setup`

use std::sync::Arc;
use std::time::Instant;

use glovebox_runtime_embedded::tree::{Office, Trees};
use tokio::task::spawn_blocking;

use crate::arguments::SetupArguments;
use crate::environment::Environment;
use crate::failure::{Failure, shown};
use crate::installation::{Installation, from_setup, took};
use crate::output::OutputThread;
use crate::progress::Progress;
use crate::run::{Audience, Reporter, Session};
use crate::signals::Signals;

/// Builds the tree that sandboxes stand on, or compares every file of the one that is there with
/// its manifest.
pub(crate) async fn run(
    arguments: &SetupArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    perform(arguments, environment, true).await
}

/// Builds the tree where there is none; one that is there is taken as it is.
pub(crate) async fn ensure(
    data: Option<std::path::PathBuf>,
    environment: &Environment,
) -> Result<(), Failure> {
    let arguments = SetupArguments { data, quiet: false };
    perform(&arguments, environment, false).await
}

async fn perform(
    arguments: &SetupArguments,
    environment: &Environment,
    is_verifying: bool,
) -> Result<(), Failure> {
    let progress = Arc::new(Progress::new(!arguments.quiet));
    let output = OutputThread::start(Arc::clone(&progress));
    let audience = if arguments.quiet {
        Audience::QuietPerson
    } else {
        Audience::Person
    };
    let mut reporter = Reporter::new(output, audience);
    let data = environment.data_folder(arguments.data.as_deref())?;
    let what = Tree { data, is_verifying };
    let done = set_up(what, environment, &progress, &mut reporter).await;
    progress.done();
    reporter.finish().await.and(done)
}

/// Which tree, and whether every file of one that is there is compared.
struct Tree {
    data: std::path::PathBuf,
    is_verifying: bool,
}

async fn set_up(
    Tree { data, is_verifying }: Tree,
    environment: &Environment,
    progress: &Arc<Progress>,
    reporter: &mut Reporter,
) -> Result<(), Failure> {
    let mut signals =
        Signals::listen().map_err(|error| Failure::machine("listening to signals", error))?;
    let installation = Installation::find()?;
    let begun = Instant::now();
    progress.phase("looking at the tree");
    let mut session = Session::new(reporter, progress, &mut signals);
    let work = {
        let (environment, progress, data) =
            (environment.clone(), Arc::clone(progress), data.clone());
        spawn_blocking(move || {
            let (trees, told) =
                installation.ensure_tree(&data, &environment, Arc::clone(&progress))?;
            if told.steps == 0 && is_verifying {
                // There was one: now it is compared file by file.
                progress.say("comparing every file with the manifest");
                trees
                    .verify_full(&data)
                    .map_err(|error| from_setup(&error))?;
            }
            Ok((trees, told))
        })
    };
    let joined = async {
        work.await
            .map_err(|error| Failure::machine("setting up the tree", error))?
    };
    let (trees, told) = session.until_stopped("setting up", joined).await?;
    progress.done();
    if let Some(note) = without_office(&trees) {
        reporter.note(note).await;
    }
    for note in &told.notes {
        reporter.note(format!("note: {note}")).await;
    }
    reporter
        .note(format!(
            "{}: {}",
            shown(&data),
            took(&told, begun.elapsed())
        ))
        .await;
    Ok(())
}

/// What a person is told where sandboxes cannot make pages of documents.
fn without_office(trees: &Trees) -> Option<String> {
    match trees.office.as_ref()? {
        Office::Present => None,
        Office::Absent { why, fix } => Some(format!(
            "note: there will be no previews of decks, letters and PDF pages: {why}; {fix}"
        )),
    }
}
