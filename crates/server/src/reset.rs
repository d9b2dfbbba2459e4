//! `glovebox admin reset-secrets`: a new master key where the one before is lost, and a new start
//! for what it had sealed.

use std::path::{Path, PathBuf};

use chrono::Utc;
use glovebox_store::{Actor, EndedWhy, Entry, MasterKey, SENTINEL, StoreError, Transaction};

use crate::app::sandboxes::NEW_KEY;
use crate::config::Config;
use crate::program::{ProgramError, open_existing};
use crate::secrets::{CREDENTIAL, SIGNING_KEY, master_key_path, new_credential, new_signing_key};

/// What a reset has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    /// Where the new master key lies.
    pub key: PathBuf,
    /// Where the one before lies now; nothing where there was none.
    pub key_before: Option<PathBuf>,
    /// Secrets that could not be opened and that only people can give again, by name.
    pub forgotten: Vec<String>,
    /// How many sandboxes have ended.
    pub ended: u64,
}

/// Why nothing was reset.
#[derive(Debug, thiserror::Error)]
pub enum ResetError {
    /// There is no need to.
    #[error("the master key at {path} opens every secret, so that nothing is lost")]
    NotNeeded {
        /// Where it lies.
        path: String,
    },
    /// The file of the present key cannot be put aside.
    #[error("putting the master key aside as {path}")]
    Aside {
        /// Under which name.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The server's data cannot be used.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The database failed, or the present key's file cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Makes a new master key. What the present one opens is sealed with the new one, what it does
/// not open is forgotten, and what the server makes for itself is made anew. All sandboxes end:
/// their agents obey the key before.
///
/// A server that runs meanwhile knows what was until it is started anew.
///
/// # Errors
/// When the present key opens everything, or cannot be read, and it is not `certain` that this is
/// wanted; or when something cannot be written. Then everything is as before.
pub async fn reset_secrets(
    config: &Config,
    actor: &Actor,
    certain: bool,
) -> Result<Reset, ResetError> {
    let store = open_existing(config).await?;
    let path = master_key_path(&config.data);
    let present = present(&path, certain)?;
    let key = MasterKey::random()?;
    let mut changes = store.begin().await?;
    let mut lost = changes.change_master_key(present.as_ref(), &key).await?;
    if lost.is_empty() && !certain {
        return Err(ResetError::NotNeeded {
            path: path.display().to_string(),
        });
    }
    let signing = new_signing_key()?;
    changes
        .put_secret(&key, SIGNING_KEY, signing.as_bytes())
        .await?;
    let credential = new_credential()?;
    changes
        .put_secret(&key, CREDENTIAL, credential.as_bytes())
        .await?;
    lost.retain(|name| ![SENTINEL, SIGNING_KEY, CREDENTIAL].contains(&name.as_str()));
    let ended = changes.end_live_leases(EndedWhy::Admin, NEW_KEY).await?;
    record(&mut changes, actor, &lost).await?;
    let key_before = put_in_place(&key, &path)?;
    if let Err(error) = changes.commit().await {
        // The database is as before, and its key has to be too. The new one opens nothing.
        if let Some(before) = &key_before {
            fs_err::rename(before, &path).map_err(|source| aside(&path, source))?;
        }
        return Err(error.into());
    }
    Ok(Reset {
        key: path,
        key_before,
        forgotten: lost,
        ended,
    })
}

/// The key that is there. One that cannot be read may only be in the wrong hands or a wrong mode:
/// it counts as lost when that is certain.
fn present(path: &Path, certain: bool) -> Result<Option<MasterKey>, StoreError> {
    if fs_err::symlink_metadata(path).is_err() {
        return Ok(None);
    }
    match MasterKey::read(path) {
        Ok(key) => Ok(Some(key)),
        Err(_) if certain => Ok(None),
        Err(error) => Err(error),
    }
}

async fn record(
    changes: &mut Transaction,
    actor: &Actor,
    lost: &[String],
) -> Result<(), StoreError> {
    let mut fields = vec!["master_key", SIGNING_KEY, CREDENTIAL];
    fields.extend(lost.iter().map(String::as_str));
    let entry = Entry {
        action: "secrets.reset",
        object_kind: "installation",
        object_id: None,
        object: "secrets",
        workspace: None,
        fields: &fields,
    };
    changes.record(actor, entry).await
}

/// Writes the new key where the server looks for it. The one before stays beside it: backups that
/// were made with it are opened with it.
fn put_in_place(key: &MasterKey, path: &Path) -> Result<Option<PathBuf>, ResetError> {
    let is_there = fs_err::symlink_metadata(path).is_ok();
    let before = is_there.then(|| {
        let now = Utc::now().format("%Y%m%dT%H%M%S%3f");
        path.with_file_name(format!("master.key.before-{now}"))
    });
    if let Some(before) = &before {
        fs_err::rename(path, before).map_err(|source| aside(before, source))?;
    }
    if let Err(error) = key.write(path) {
        if let Some(before) = &before {
            fs_err::rename(before, path).map_err(|source| aside(path, source))?;
        }
        return Err(error.into());
    }
    Ok(before)
}

fn aside(path: &Path, source: std::io::Error) -> ResetError {
    ResetError::Aside {
        path: path.display().to_string(),
        source,
    }
}
