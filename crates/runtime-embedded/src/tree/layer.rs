//! The runtime layer: Glovebox's own part of a sandbox, laid over the root tree.
//!
//! It is small and comes with the program, so it is made whenever the one at hand is not of
//! these parts. Python files are embedded by the build script.

use std::path::PathBuf;

use fs_err as fs;
use serde::{Deserialize, Serialize};

use super::copy;
use super::error::{SetupError, file};
use super::manifest;
use super::progress::{Progress, Step};
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
    layer: String,
}

/// Makes sure of the layer of these programs and gives its name in the store.
pub(crate) fn ensure(
    programs: &Programs,
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
        let home = unfinished.path.join("opt/glovebox");
        // Readable for all: the overlay reads on behalf of the pod's id, which does not own the
        // file when root set it up. Landlock keeps the workload from it.
        for (from, name, mode) in [
            (&programs.agent, "glovebox-agent", 0o755),
            (&programs.exec, "glovebox-exec", 0o755),
        ] {
            let to = home.join("bin").join(name);
            copy::file(from, &to)
                .and_then(|()| copy::set_mode(&to, mode))
                .map_err(&failed)?;
        }
        for (path, content) in EMBEDDED {
            copy::text(&home.join("lib").join(path), content).map_err(&failed)?;
        }
        settle_folders(&unfinished.path)?;
        store.finish(unfinished, &layer, &lock)?;
    }
    store.remember(
        RECORD,
        &Record {
            embedded,
            agent,
            exec,
            layer: layer.clone(),
        },
        &lock,
    )?;
    Ok(layer)
}

fn embedded_hash() -> String {
    let all: String = EMBEDDED
        .iter()
        .map(|(path, content)| format!("{path} {}\n", manifest::hash_bytes(content.as_bytes())))
        .collect();
    manifest::hash_bytes(all.as_bytes())
}

/// Folders can be passed through by all, whatever this process's own mask.
fn settle_folders(folder: &std::path::Path) -> Result<(), SetupError> {
    let failed = file(DOING);
    copy::set_mode(folder, 0o755).map_err(&failed)?;
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        if entry.file_type().map_err(&failed)?.is_dir() {
            settle_folders(&entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::tree::progress::Silent;

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
        let first = ensure(&programs, &store, &mut Silent).unwrap();
        assert_eq!(ensure(&programs, &store, &mut Silent).unwrap(), first);
        let helper = store
            .tree(&first)
            .tree
            .join("opt/glovebox/bin/glovebox-exec");
        assert_eq!(
            fs::metadata(helper).unwrap().permissions().mode() & 0o7777,
            0o755
        );

        fs::write(&programs.agent, "other").unwrap();
        assert_ne!(ensure(&programs, &store, &mut Silent).unwrap(), first);
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
        let layer = ensure(&programs, &store, &mut Silent).unwrap();
        fs::write(
            store
                .tree(&layer)
                .tree
                .join("opt/glovebox/bin/glovebox-agent"),
            "9",
        )
        .unwrap();
        let error = ensure(&programs, &store, &mut Silent).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("opt/glovebox/bin/glovebox-agent has been changed"),
            "{error}"
        );
    }
}
