//! `glovebox backup` and `glovebox restore`: a server's data in one file, and back.

use std::io::{BufReader, BufWriter};
use std::path::Path;

use glovebox_protocol::error::ErrorCode;
use glovebox_server::program::{objects, open_existing, open_to_fill};
use glovebox_server::secrets::{KeyState, key_state, master_key_path};
use glovebox_store::{Backup, BackupError};
use serde_json::json;

use super::admin::say;
use super::serve::{config, failed};
use crate::arguments::{BackupArguments, RestoreArguments};
use crate::environment::Environment;
use crate::failure::{Failure, reason, shown, unreadable};

/// Writes everything but the master key into a new file.
pub(crate) async fn back_up(
    arguments: &BackupArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let out = &arguments.out;
    let config = config(&arguments.common.place, environment, "")?;
    if fs_err::symlink_metadata(out).is_ok() {
        return Err(taken(out));
    }
    let doing = "making a backup";
    let store = open_existing(&config).await;
    let store = store.map_err(|error| failed(doing, error))?;
    let objects = objects(&config).map_err(|error| Failure::machine(doing, error))?;
    // Under its own name there is only ever a whole one. Only its owner can read it.
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let unwritable = |error: &std::io::Error| {
        let problem = format!("cannot write {}", shown(out));
        Failure::input(problem, reason(error))
    };
    let file = tempfile::Builder::new()
        .prefix(".glovebox-backup-")
        .tempfile_in(folder)
        .map_err(|error| unwritable(&error))?;
    let made = store.back_up(&objects, BufWriter::new(file.as_file()));
    let made = made.await.map_err(|error| not_made(out, error))?;
    let synced = file.as_file().sync_all();
    synced.map_err(|error| unwritable(&error))?;
    file.persist_noclobber(out)
        .map_err(|failed| match failed.error.kind() {
            std::io::ErrorKind::AlreadyExists => taken(out),
            _ => unwritable(&failed.error),
        })?;
    let folder = fs_err::File::open(folder).and_then(|folder| folder.sync_all());
    folder.map_err(|error| unwritable(&error))?;

    let key = master_key_path(&config.data);
    let mut text = format!(
        "{} has {} rows and {} files, {} bytes\n\
         the master key is not in it: keep a copy of {} in another place, or secrets have to be \
         made anew after a restore\n",
        shown(out),
        made.rows,
        made.objects,
        made.bytes,
        shown(&key),
    );
    if !made.missing.is_empty() {
        text.push_str(&format!(
            "these files are not in it, because they are gone or altered: {}\n",
            names(&made.missing).join(", ")
        ));
    }
    let document = json!({
        "file": shown(out), "rows": made.rows, "objects": made.objects, "bytes": made.bytes,
        "missing": names(&made.missing), "has_master_key": false, "master_key": shown(&key),
    });
    say(&arguments.common, text.trim_end().into(), &document)
}

/// Fills an empty database and the folder of files from a backup.
pub(crate) async fn restore(
    arguments: &RestoreArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let from = &arguments.from;
    let config = config(&arguments.common.place, environment, "")?;
    let file = fs_err::File::open(from).map_err(|error| unreadable(from, &error))?;
    let backup = Backup::open(BufReader::new(file));
    let backup = backup.map_err(|error| not_restored(from, error))?;
    let made_at = backup.made_at();
    let doing = "restoring a backup";
    let store = open_to_fill(&config).await;
    let store = store.map_err(|error| failed(doing, error))?;
    let objects = objects(&config).map_err(|error| Failure::machine(doing, error))?;
    let restored = store.restore(&objects, backup).await;
    let restored = restored.map_err(|error| not_restored(from, error))?;
    let state = key_state(&store, &config.data).await;
    let state = state.map_err(|error| Failure::machine("looking at the master key", error))?;

    let key = shown(master_key_path(&config.data));
    let mut text = format!(
        "{} rows and {} files are as they were at {}\n\
         sessions are not part of a backup: everybody signs in again\n",
        restored.rows,
        restored.objects,
        made_at.format("%Y-%m-%d %H:%M:%S UTC"),
    );
    if !restored.missing.is_empty() {
        text.push_str(&format!(
            "these files were gone when it was made: {}\n",
            names(&restored.missing).join(", ")
        ));
    }
    if restored.replaced > 0 {
        text.push_str(&format!(
            "{} texts held the character U+0000, which PostgreSQL cannot store; there is U+FFFD \
             in its place\n",
            restored.replaced
        ));
    }
    text.push_str(&match state {
        KeyState::Fits => format!("its secrets open with {key}; `glovebox serve` goes on"),
        KeyState::Missing => format!(
            "put the master key of the server that was backed up at {key}, or run `glovebox admin \
             reset-secrets`, before you start `glovebox serve`"
        ),
        KeyState::Other => format!(
            "{key} is not the master key of the server that was backed up; put that one there, or \
             run `glovebox admin reset-secrets`, before you start `glovebox serve`"
        ),
    });
    let document = json!({
        "rows": restored.rows, "objects": restored.objects, "made_at": made_at,
        "missing": names(&restored.missing), "replaced": restored.replaced,
        "master_key": key, "master_key_fits": state == KeyState::Fits,
    });
    say(&arguments.common, text, &document)
}

fn names(files: &[impl ToString]) -> Vec<String> {
    files.iter().map(ToString::to_string).collect()
}

fn taken(out: &Path) -> Failure {
    Failure::Input {
        problem: format!("{} is there already", shown(out)),
        fix: Some("name another file: a backup is never written over".into()),
        cause: None,
    }
}

fn not_made(out: &Path, error: BackupError) -> Failure {
    Failure::Machine {
        doing: format!("cannot make the backup {}", shown(out)),
        fix: error.fix().map(Into::into),
        code: ErrorCode::Internal,
        cause: Some(error.into()),
    }
}

fn not_restored(from: &Path, error: BackupError) -> Failure {
    Failure::Input {
        problem: format!("nothing was restored from {}", shown(from)),
        fix: error.fix().map(Into::into),
        cause: Some(error.into()),
    }
}
