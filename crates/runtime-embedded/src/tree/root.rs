//! Builds the root tree: Python, the toolbox, tools, libraries, fonts and an invented `/etc`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::{SetupError, file};
use super::libraries::Libraries;
use super::manifest;
use super::progress::{Progress, Step};
use super::python::{self, Python};
use super::store::{FileIdentity, Locked, Store};
use super::{compile, confined, fonts, interpreter, settle, system, tools, wheels};

/// Raised whenever this code makes another tree of the same ingredients.
const BUILDER: u32 = 3;

const RECORD: &str = "root.json";

/// What a root tree is made of.
pub(crate) struct Ingredients<'a> {
    pub(crate) lock: &'a str,
    pub(crate) python: Option<&'a Path>,
    pub(crate) search: &'a [PathBuf],
}

/// A root tree that can be used.
pub(crate) struct Ready {
    /// Its name in the store.
    pub(crate) tree: String,
    /// The host's interpreter that it is a copy of; it may be gone by now.
    pub(crate) interpreter: PathBuf,
}

/// Which tree was made last, and of what.
#[derive(Debug, Serialize, Deserialize)]
struct Record {
    recipe: String,
    chosen: Option<PathBuf>,
    interpreter: FileIdentity,
    tree: String,
}

impl Ingredients<'_> {
    /// Makes sure of a tree.
    pub(crate) fn ensure(
        &self,
        store: &Store,
        progress: &mut dyn Progress,
    ) -> Result<Ready, SetupError> {
        if let Some(ready) = self.made_before(store) {
            let place = store.tree(&ready.tree);
            if place.looks_untouched()? {
                return Ok(ready);
            }
            progress.begins(Step::Verify);
            place.verify()?;
            let _lock = store.lock(progress)?;
            place.seal()?;
            return Ok(ready);
        }
        let lock = store.lock(progress)?;
        progress.begins(Step::FindPython);
        let python = python::find(self.python, self.search)?;
        let tree = self.name(&python);
        let place = store.tree(&tree);
        if place.exists() {
            progress.begins(Step::Verify);
            place.verify()?;
            place.seal()?;
        } else {
            self.build(&python, &tree, (store, &lock), progress)?;
        }
        let record = Record {
            recipe: self.recipe(),
            chosen: self.python.map(Path::to_path_buf),
            interpreter: FileIdentity::of(&python.executable)
                .map_err(file("recording the new tree"))?,
            tree: tree.clone(),
        };
        store.remember(RECORD, &record, &lock)?;
        Ok(Ready {
            tree,
            interpreter: python.executable,
        })
    }

    /// The tree that was made last, if it is still what would be made now. Starts no program.
    fn made_before(&self, store: &Store) -> Option<Ready> {
        let record: Record = store.recall(RECORD)?;
        let same = record.recipe == self.recipe()
            && record.chosen.as_deref() == self.python
            && !record.interpreter.is_replaced()
            && store.tree(&record.tree).exists();
        same.then(|| Ready {
            interpreter: record.interpreter.path().to_path_buf(),
            tree: record.tree,
        })
    }

    fn recipe(&self) -> String {
        manifest::hash_bytes(format!("{BUILDER}\n{}", self.lock).as_bytes())
    }

    /// A tree's name holds a hash of all that decides what it is made of.
    fn name(&self, python: &Python) -> String {
        let all = format!(
            "{}\n{}\n{}\n{}",
            self.recipe(),
            python.title(),
            python.build,
            python.machine
        );
        format!("root-{}", &manifest::hash_bytes(all.as_bytes())[..16])
    }

    fn build(
        &self,
        python: &Python,
        name: &str,
        (store, lock): (&Store, &Locked),
        progress: &mut dyn Progress,
    ) -> Result<(), SetupError> {
        let unfinished = store.begin(name, lock)?;
        let tree = &*unfinished.path;
        progress.begins(Step::CopyPython);
        system::lay_out(tree)?;
        let library = interpreter::install(python, tree)?;

        progress.begins(Step::Packages);
        let locked = store.temporary(self.lock)?;
        wheels::install(python, locked.path(), &library, progress)?;
        drop(locked);

        progress.begins(Step::CopySystem);
        for note in tools::install(tree)? {
            progress.notes(&note);
        }
        fonts::install(tree)?;
        system::install(tree)?;

        progress.begins(Step::Libraries);
        let program = tree.join("opt/python/bin").join(python.name());
        Libraries::new(tree, &python.base_prefix, &program, &python.multiarch)?.complete()?;

        progress.begins(Step::Compile);
        compile::below(&python.executable, tree, &library)?;
        settle::everything(tree)?;

        progress.begins(Step::TryOut);
        confined::finish(tree)?;
        fonts::make_cache(tree);
        settle::everything(tree)?;

        progress.begins(Step::Manifest);
        store.finish(unfinished, name, lock)
    }
}
