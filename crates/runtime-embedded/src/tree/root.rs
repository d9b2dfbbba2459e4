//! Builds the root tree: Python, the toolbox, tools, libraries, fonts and an invented `/etc`.

use std::path::{Path, PathBuf};
use std::process::Command;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::command;
use super::copy;
use super::error::{SetupError, file};
use super::libraries::Libraries;
use super::manifest;
use super::progress::{Progress, Step};
use super::python::{self, Python};
use super::store::{FileIdentity, Locked, Store};
use super::{confined, fonts, interpreter, system, tools, wheels};

/// Raised whenever this code makes another tree of the same ingredients.
const BUILDER: u32 = 2;

const RECORD: &str = "root.json";

/// What a root tree is made of.
pub(crate) struct Ingredients<'a> {
    pub(crate) lock: &'a str,
    pub(crate) python: Option<&'a Path>,
    pub(crate) search: &'a [PathBuf],
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
    /// Makes sure of a tree and gives its name in the store.
    pub(crate) fn ensure(
        &self,
        store: &Store,
        progress: &mut dyn Progress,
    ) -> Result<String, SetupError> {
        if let Some(tree) = self.made_before(store) {
            let place = store.tree(&tree);
            if place.looks_untouched()? {
                return Ok(tree);
            }
            progress.begins(Step::Verify);
            place.verify()?;
            let _lock = store.lock(progress)?;
            place.seal()?;
            return Ok(tree);
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
        Ok(tree)
    }

    /// The tree that was made last, if it is still what would be made now. Starts no program.
    fn made_before(&self, store: &Store) -> Option<String> {
        let record: Record = store.recall(RECORD)?;
        let same = record.recipe == self.recipe()
            && record.chosen.as_deref() == self.python
            && !record.interpreter.is_replaced()
            && store.tree(&record.tree).exists();
        same.then_some(record.tree)
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
        compile(python, tree, &library)?;
        settle(tree, Path::new(""))?;

        progress.begins(Step::TryOut);
        confined::finish(tree)?;
        fonts::make_cache(tree);
        settle(tree, Path::new(""))?;

        progress.begins(Step::Manifest);
        store.finish(unfinished, name, lock)
    }
}

/// Compiles every Python file, with the path that it has in a sandbox, and so that an import
/// need not look at the source's time. The tree is read-only, so the source cannot change.
fn compile(python: &Python, tree: &Path, library: &Path) -> Result<(), SetupError> {
    let doing = "compiling Python files";
    let mut command = Command::new(&python.executable);
    command
        .args([
            "-I",
            "-m",
            "compileall",
            "-q",
            "-j",
            "2",
            "--invalidation-mode",
            "unchecked-hash",
        ])
        .arg("-s")
        .arg(tree)
        .args(["-p", "/"])
        .arg(library);
    let finished = command::follow(doing, &mut command, |_| {})?;
    if finished.status.success() {
        return Ok(());
    }
    Err(SetupError::Failed {
        doing,
        status: finished.status,
        output: finished.output,
    })
}

/// Gives everything its final mode, and refuses a link that leads out of the tree.
fn settle(tree: &Path, relative: &Path) -> Result<(), SetupError> {
    let failed = file("setting modes in the new tree");
    copy::set_mode(&tree.join(relative), 0o755).map_err(&failed)?;
    for entry in fs::read_dir(tree.join(relative)).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let relative = relative.join(entry.file_name());
        let kind = entry.file_type().map_err(&failed)?;
        if kind.is_dir() {
            settle(tree, &relative)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(&failed)?;
            if leads_out(&relative, &target) {
                return Err(SetupError::Unwanted {
                    path: relative,
                    what: "a link that leads out of the tree",
                });
            }
        } else {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = entry.metadata().map_err(&failed)?.permissions().mode();
            let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
            copy::set_mode(&entry.path(), mode).map_err(&failed)?;
        }
    }
    Ok(())
}

/// Whether a link, read from outside, leads above the root. Links of a tree go up only at their
/// beginning, so counting is enough; one that goes through another link is not followed.
fn leads_out(at: &Path, target: &Path) -> bool {
    use std::path::Component;
    let mut depth = at.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_told_from_those_that_stay() {
        assert!(!leads_out(Path::new("mnt/data"), Path::new("../workspace")));
        assert!(leads_out(
            Path::new("mnt/data"),
            Path::new("../../workspace")
        ));
        assert!(leads_out(Path::new("bin"), Path::new("/usr/bin")));
        assert!(!leads_out(Path::new("bin"), Path::new("usr/bin")));
    }
}
