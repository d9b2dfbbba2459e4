//! `glovebox admin reset-secrets`: a new master key where the one before is lost, and a new start
//! for what it had sealed.

use std::path::{Path, PathBuf};

use chrono::Utc;
use glovebox_store::{Actor, EndedWhy, Entry, MasterKey, SENTINEL, StoreError, Transaction};

use crate::app::sandboxes::NEW_KEY;
use crate::config::Config;
use crate::program::{ProgramError, open_existing};
use crate::secrets::{
    CREDENTIAL, SIGNING_KEY, is_missing, master_key_path, new_credential, new_signing_key,
    next_key_path, put_in_place, settle,
};

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
/// The new key lies beside the present one until the database has it. Where this is broken off in
/// between, the next start or reset finds out which of the two it has.
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
    let mut changes = store.begin().await?;
    // One reset at a time: the second one begins with the key of the first.
    settle(&mut changes, &config.data).await?;
    let present = present(&path, certain)?;
    let key = MasterKey::random()?;
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
    let next = next_key_path(&config.data);
    put_aside(&next)?;
    key.write(&next)?;
    // Whether a commit that failed was one is not known here.
    changes.commit().await?;
    let key_before = put_in_place(&config.data)?;
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
    if is_missing(path) {
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

/// Puts a key aside that was to be the next one of another database: of this one it is not.
fn put_aside(next: &Path) -> Result<(), StoreError> {
    if is_missing(next) {
        return Ok(());
    }
    let now = Utc::now().format("%Y%m%dT%H%M%S%3f");
    let aside = next.with_file_name(format!("master.key.unused-{now}"));
    fs_err::rename(next, &aside).map_err(|error| StoreError::MasterKey {
        path: next.into(),
        why: error.to_string(),
    })
}
