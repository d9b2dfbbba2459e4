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

/// The programs of Glovebox that go into every sandbox.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `glovebox-agent`.
    pub agent: PathBuf,
    /// `glovebox-exec`.
    pub exec: PathBuf,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    embedded: String,
    agent: FileIdentity,
    exec: FileIdentity,
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
    let agent = FileIdentity::of(&programs.agent).map_err(&failed)?;
    let exec = FileIdentity::of(&programs.exec).map_err(&failed)?;
    let known: Option<Record> = store.recall(RECORD);
    if let Some(known) = known
        && (&known.embedded, &known.agent, &known.exec) == (&embedded, &agent, &exec)
        && known.root == root.tree
        && store.tree(&known.layer).exists()
        && store.tree(&known.layer).looks_untouched()?
    {
        return Ok(known.layer);
    }
    let lock = store.lock(progress)?;
    let parts = [
        manifest::hash_file(&programs.agent).map_err(&failed)?,
        manifest::hash_file(&programs.exec).map_err(&failed)?,
        embedded.clone(),
        root.tree.clone(),
    ];
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
            agent,
            exec,
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
    for (from, name) in [
        (&programs.agent, "glovebox-agent"),
        (&programs.exec, "glovebox-exec"),
    ] {
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

    #[test]
    fn another_agent_makes_another_layer_and_the_same_one_none() {
        let data = tempfile::tempdir().unwrap();
        let programs = Programs {
            agent: data.path().join("agent"),
            exec: data.path().join("exec"),
        };
        fs::write(&programs.agent, "1").unwrap();
        fs::write(&programs.exec, "2").unwrap();
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
        fs::write(&programs.agent, "other").unwrap();
        assert_ne!(
            ensure(&programs, &root("root-1"), &store, &mut Silent).unwrap(),
            first
        );
    }

    #[test]
    fn a_changed_layer_is_refused_by_name() {
        let data = tempfile::tempdir().unwrap();
        let programs = Programs {
            agent: data.path().join("agent"),
            exec: data.path().join("exec"),
        };
        fs::write(&programs.agent, "1").unwrap();
        fs::write(&programs.exec, "2").unwrap();
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
