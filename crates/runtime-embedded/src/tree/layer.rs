//! The runtime layer: Glovebox's own part of a sandbox, laid over the root tree.
//!
//! It is small and comes with the program, so it is made whenever the one at hand is not of
//! these parts. Python files are embedded by the build script, and compiled for the interpreter
//! of the root tree.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::compile;
use super::copy;
use super::error::{SetupError, file};
use super::manifest;
use super::progress::{Progress, Step};
use super::root::Ready;
use super::settle;
use super::store::{FileIdentity, Store};

include!(concat!(env!("OUT_DIR"), "/embedded_python.rs"));

const DOING: &str = "making the runtime layer";
const RECORD: &str = "runtime.json";

/// The programs of Glovebox that go into every sandbox, and the library with which its Python
/// copies itself.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `glovebox-agent`.
    pub agent: PathBuf,
    /// `glovebox-exec`.
    pub exec: PathBuf,
    /// `libglovebox_template.so`.
    pub library: PathBuf,
}

impl Programs {
    const AGENT: &str = "glovebox-agent";
    const EXEC: &str = "glovebox-exec";
    const LIBRARY: &str = "libglovebox_template.so";

    /// Those that lie in one folder, as a build leaves them.
    #[must_use]
    pub fn in_folder(folder: &Path) -> Self {
        let find = |name: &str| Ok::<_, std::convert::Infallible>(folder.join(name));
        let Ok(programs) = Self::found(find);
        programs
    }

    /// Those that are found by their names.
    ///
    /// # Errors
    /// The first that is not found.
    pub fn found<E>(find: impl Fn(&str) -> Result<PathBuf, E>) -> Result<Self, E> {
        Ok(Self {
            agent: find(Self::AGENT)?,
            exec: find(Self::EXEC)?,
            library: find(Self::LIBRARY)?,
        })
    }

    /// Each with its name in a sandbox.
    fn parts(&self) -> [(&Path, &'static str); 3] {
        [
            (&self.agent, Self::AGENT),
            (&self.exec, Self::EXEC),
            (&self.library, Self::LIBRARY),
        ]
    }
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    embedded: String,
    programs: Vec<FileIdentity>,
    /// The root tree that the Python files are compiled for.
    root: String,
    layer: String,
}

/// Makes sure of the layer of these programs and gives its name in the store.
pub(crate) fn ensure(
    programs: &Programs,
    root: &Ready,
    store: &Store,
    progress: &mut dyn Progress,
) -> Result<String, SetupError> {
    let failed = file(DOING);
    let embedded = embedded_hash();
    let identities = programs
        .parts()
        .iter()
        .map(|(path, _)| FileIdentity::of(path))
        .collect::<Result<Vec<_>, _>>()
        .map_err(&failed)?;
    let known: Option<Record> = store.recall(RECORD);
    if let Some(known) = known
        && (&known.embedded, &known.programs) == (&embedded, &identities)
        && known.root == root.tree
        && store.tree(&known.layer).exists()
        && store.tree(&known.layer).looks_untouched()?
    {
        return Ok(known.layer);
    }
    let lock = store.lock(progress)?;
    let mut parts = programs
        .parts()
        .iter()
        .map(|(path, _)| manifest::hash_file(path))
        .collect::<Result<Vec<_>, _>>()
        .map_err(&failed)?;
    parts.extend([embedded.clone(), root.tree.clone()]);
    let layer = format!(
        "runtime-{}",
        &manifest::hash_bytes(parts.join("\n").as_bytes())[..16]
    );
    let place = store.tree(&layer);
    if place.exists() {
        if !place.looks_untouched()? {
            progress.begins(Step::Verify);
            place.verify()?;
            place.seal()?;
        }
    } else {
        let unfinished = store.begin(&layer, &lock)?;
        fill(programs, root, &unfinished.path)?;
        store.finish(unfinished, &layer, &lock)?;
    }
    store.remember(
        RECORD,
        &Record {
            embedded,
            programs: identities,
            root: root.tree.clone(),
            layer: layer.clone(),
        },
        &lock,
    )?;
    Ok(layer)
}

/// Puts everything into an empty layer.
fn fill(programs: &Programs, root: &Ready, layer: &Path) -> Result<(), SetupError> {
    let failed = file(DOING);
    let home = layer.join("opt/glovebox");
    // Readable for all: the overlay reads on behalf of the pod's id, which does not own the
    // file when root set it up. Landlock keeps the workload from it.
    for (from, name) in programs.parts() {
        let to = home.join("bin").join(name);
        copy::file(from, &to)
            .and_then(|()| copy::set_mode(&to, 0o755))
            .map_err(&failed)?;
    }
    for (path, content) in EMBEDDED {
        copy::text(&home.join("lib").join(path), content).map_err(&failed)?;
    }
    // Where the interpreter is gone, each kernel's start compiles them anew: some milliseconds,
    // and nothing else.
    if root.interpreter.is_file() {
        compile::below(&root.interpreter, layer, &home.join("lib"))?;
    }
    settle::everything(layer)
}

fn embedded_hash() -> String {
    let all: String = EMBEDDED
        .iter()
        .map(|(path, content)| format!("{path} {}\n", manifest::hash_bytes(content.as_bytes())))
        .collect();
    manifest::hash_bytes(all.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use fs_err as fs;

    use super::*;
    use crate::tree::progress::Silent;

    fn root(tree: &str) -> Ready {
        Ready {
            tree: tree.into(),
            interpreter: "/usr/bin/python3".into(),
        }
    }

    fn programs(folder: &Path) -> Programs {
        let programs = Programs::in_folder(folder);
        for (path, name) in programs.parts() {
            fs::write(path, name).unwrap();
        }
        programs
    }

    #[test]
    fn other_programs_make_another_layer_and_the_same_ones_none() {
        let data = tempfile::tempdir().unwrap();
        let programs = programs(data.path());
        let store = Store::open(data.path().join("layers")).unwrap();
        let first = ensure(&programs, &root("root-1"), &store, &mut Silent).unwrap();
        assert_eq!(
            ensure(&programs, &root("root-1"), &store, &mut Silent).unwrap(),
            first
        );
        let helper = store
            .tree(&first)
            .tree
            .join("opt/glovebox/bin/glovebox-exec");
        assert_eq!(
            fs::metadata(helper).unwrap().permissions().mode() & 0o7777,
            0o755
        );

        let compiled = store
            .tree(&first)
            .tree
            .join("opt/glovebox/lib/glovebox_kernel/__pycache__");
        assert!(fs::read_dir(compiled).unwrap().count() > 0);

        let other = ensure(&programs, &root("root-2"), &store, &mut Silent).unwrap();
        assert_ne!(other, first, "compiled for another interpreter");
        let mut seen = std::collections::BTreeSet::from([first]);
        for (path, _) in programs.parts() {
            fs::write(path, "other").unwrap();
            let changed = ensure(&programs, &root("root-1"), &store, &mut Silent).unwrap();
            assert!(seen.insert(changed), "{} does not count", path.display());
        }
    }

    #[test]
    fn a_changed_layer_is_refused_by_name() {
        let data = tempfile::tempdir().unwrap();
        let programs = programs(data.path());
        let store = Store::open(data.path().join("layers")).unwrap();
        let layer = ensure(&programs, &root("root-1"), &store, &mut Silent).unwrap();
        fs::write(
            store
                .tree(&layer)
                .tree
                .join("opt/glovebox/bin/glovebox-agent"),
            "9",
        )
        .unwrap();
        let error = ensure(&programs, &root("root-1"), &store, &mut Silent).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("opt/glovebox/bin/glovebox-agent has been changed"),
            "{error}"
        );
    }
}
