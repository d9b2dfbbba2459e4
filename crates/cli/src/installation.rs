//! Where this installation's other programs are, and the tree that sandboxes stand on.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use glovebox_runtime_embedded::tree::{self, Programs, Setup, SetupError, Step, Trees};

use crate::environment::Environment;
use crate::failure::{Failure, shown};
use crate::progress::Progress;
use crate::quantity::time;

/// The programs that belong to `glovebox`.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    /// Makes boxes.
    pub(crate) launcher: PathBuf,
    /// Those that go into boxes.
    programs: Programs,
}

/// Finds a program: beside this one, else in `../libexec/glovebox`.
pub(crate) fn find(name: &str) -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()
        .map_err(|error| Failure::machine("finding this program's own place", error))?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let places = [
        beside.join(name),
        beside.join("../libexec/glovebox").join(name),
    ];
    places
        .iter()
        .find(|path| path.is_file())
        .cloned()
        .ok_or_else(|| Failure::Machine {
            doing: format!(
                "finding {name}: it is neither {} nor {}",
                shown(&places[0]),
                shown(&places[1])
            ),
            fix: Some("install Glovebox anew, or build it with `make build`".into()),
            code: glovebox_protocol::error::ErrorCode::RuntimeUnavailable,
            cause: None,
        })
}

impl Installation {
    /// Finds them: beside this program, else in `../libexec/glovebox`.
    pub(crate) fn find() -> Result<Self, Failure> {
        Ok(Self {
            launcher: find("glovebox-launcher")?,
            programs: Programs::found(find)?,
        })
    }

    /// Makes sure of the tree in the data folder. Takes minutes the first time, next to nothing
    /// afterwards.
    pub(crate) fn ensure_tree(
        &self,
        data: &Path,
        environment: &Environment,
        progress: Arc<Progress>,
    ) -> Result<(Trees, Told), Failure> {
        let setup = Setup {
            data: data.to_owned(),
            programs: self.programs.clone(),
            python: None,
            search: std::env::split_paths(&environment.path).collect(),
            lock: tree::LOCK.into(),
            office: true,
        };
        let mut told = Told {
            progress,
            notes: Vec::new(),
            steps: 0,
            step: None,
        };
        let trees = setup
            .ensure(&mut told)
            .map_err(|error| from_setup(&error))?;
        Ok((trees, told))
    }
}

/// What a failed set-up means to the person.
pub(crate) fn from_setup(error: &SetupError) -> Failure {
    Failure::Machine {
        doing: "setting up the tree that sandboxes stand on".into(),
        fix: Some(error.fix()),
        code: glovebox_protocol::error::ErrorCode::RuntimeUnavailable,
        cause: Some(chain(error).into()),
    }
}

/// A set-up's error with its causes, in one sentence.
fn chain(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {}", chain(source)),
        None => error.to_string(),
    }
}

/// Shows a set-up's progress and keeps its notes.
pub(crate) struct Told {
    progress: Arc<Progress>,
    /// What is worth telling when it is done.
    pub(crate) notes: Vec<String>,
    /// How many steps there were; none when there was nothing to do.
    pub(crate) steps: usize,
    step: Option<Step>,
}

impl tree::Progress for Told {
    fn begins(&mut self, step: Step) {
        self.steps += 1;
        self.step = Some(step);
        self.progress.say(in_words(step));
    }

    fn advances(&mut self, done: usize, total: usize) {
        if let Some(step) = self.step {
            self.progress
                .say(format!("{}, {done} of {total}", in_words(step)));
        }
    }

    fn notes(&mut self, note: &str) {
        self.notes.push(note.into());
    }
}

/// A step for the progress line. What is not done once but again and again is told apart.
fn in_words(step: Step) -> String {
    match step {
        Step::Wait | Step::Verify => step.to_string(),
        once => format!("setting up (once, takes minutes): {once}"),
    }
}

/// How long a set-up took, in words, where it did something.
pub(crate) fn took(told: &Told, elapsed: std::time::Duration) -> String {
    if told.steps == 0 {
        "the tree is as it was built".into()
    } else {
        format!("the tree is set up (took {})", time(elapsed))
    }
}
