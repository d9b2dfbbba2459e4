//! The master key, and the secrets that the server makes for itself.

use std::path::{Path, PathBuf};

use chrono::Utc;
use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::{Credential, SigningKey};
use glovebox_store::{MasterKey, SENTINEL, Store, StoreError, Transaction};
use zeroize::Zeroizing;

use crate::program::{INSTALLATION, ProgramError};

/// The name of the secret with which requests to agents are signed.
pub(crate) const SIGNING_KEY: &str = "signing_key";

/// The name of the secret that this machine's gateway accepts.
pub(crate) const CREDENTIAL: &str = "profile/embedded/credential";

/// Whether a server can go on with the master key of its folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyState {
    /// It can: the key opens what is sealed, or nothing is.
    Fits,
    /// There is none.
    Missing,
    /// It is another one, or cannot be read.
    Other,
}

/// Where the master key lies.
#[must_use]
pub fn master_key_path(data: &Path) -> PathBuf {
    data.join("master.key")
}

/// Where a key lies that is to take the master key's place, until the database has it.
#[must_use]
pub fn next_key_path(data: &Path) -> PathBuf {
    data.join("master.key.next")
}

pub(crate) fn is_missing(path: &Path) -> bool {
    fs_err::symlink_metadata(path).is_err()
}

/// The master key of the data folder; a new one where the database has no secret yet.
///
/// # Errors
/// When it is not there and there are secrets, or is not the one that sealed them.
pub async fn master_key(store: &Store, data: &Path) -> Result<MasterKey, StoreError> {
    let path = master_key_path(data);
    if !is_missing(&next_key_path(data)) {
        let mut changes = store.begin().await?;
        settle(&mut changes, data).await?;
    }
    if is_missing(&path) && !store.has_secrets().await? {
        make_first(store, &path).await?;
    }
    let key = MasterKey::read(&path)?;
    store.adopt_master_key(&key).await?;
    Ok(key)
}

/// Makes the first master key of a database. Of several servers that do it at once, in one folder or
/// in many, one does: the others have to be given its key.
async fn make_first(store: &Store, path: &Path) -> Result<(), StoreError> {
    let key = MasterKey::random()?;
    let mut changes = store.begin().await?;
    // Whoever comes second waits here, and makes none.
    if !changes.adopt_master_key(&key).await? || !is_missing(path) {
        return Ok(());
    }
    // The file first: a key that no database knows is taken by the next start, while a database
    // whose key nobody has is lost.
    key.write(path)?;
    changes.commit().await
}

/// Ends what a reset has begun that was broken off: a key that is to take the master key's place does
/// so where the database has it already, and is thrown away where it has the present one. While these
/// changes are under way, no other reset is.
///
/// # Errors
/// When a key cannot be read or put in place, or the database does not answer.
pub(crate) async fn settle(changes: &mut Transaction, data: &Path) -> Result<(), StoreError> {
    // What is there now may be that of a reset that is about to commit: its end is waited for.
    let _: Option<InstallationId> = changes.setting(INSTALLATION).await?;
    let (path, next) = (master_key_path(data), next_key_path(data));
    if is_missing(&next) {
        return Ok(());
    }
    if fits(changes.secret(&MasterKey::read(&next)?, SENTINEL).await)? {
        put_in_place(data)?;
    } else if let Ok(present) = MasterKey::read(&path)
        && fits(changes.secret(&present, SENTINEL).await)?
    {
        fs_err::remove_file(&next).map_err(|error| unusable(&next, &error))?;
    }
    Ok(())
}

/// Puts the next key where the server looks for the master key. The one before stays beside it:
/// backups that were made with it are opened with it. There is a master key at every moment.
pub(crate) fn put_in_place(data: &Path) -> Result<Option<PathBuf>, StoreError> {
    let (path, next) = (master_key_path(data), next_key_path(data));
    let before = (!is_missing(&path)).then(|| {
        let now = Utc::now().format("%Y%m%dT%H%M%S%3f");
        path.with_file_name(format!("master.key.before-{now}"))
    });
    if let Some(before) = &before {
        fs_err::hard_link(&path, before).map_err(|error| unusable(before, &error))?;
    }
    match fs_err::rename(&next, &path) {
        Ok(()) => Ok(before),
        // A server that was started meanwhile has done it.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_missing(&path) => {
            Ok(before)
        }
        Err(error) => Err(unusable(&path, &error)),
    }
}

fn unusable(path: &Path, error: &std::io::Error) -> StoreError {
    StoreError::MasterKey {
        path: path.into(),
        why: error.to_string(),
    }
}

/// Whether the key that a sentinel was asked for with is the one of the database.
fn fits(sentinel: Result<Option<Zeroizing<Vec<u8>>>, StoreError>) -> Result<bool, StoreError> {
    match sentinel {
        Ok(found) => Ok(found.is_some()),
        Err(StoreError::Sealed { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Looks whether the master key of the data folder is the one of the database.
///
/// # Errors
/// When the database does not answer.
pub async fn key_state(store: &Store, data: &Path) -> Result<KeyState, StoreError> {
    if !store.has_secrets().await? {
        return Ok(KeyState::Fits);
    }
    let mut state = KeyState::Missing;
    // The next one is put in place by the next start, where it is the database's.
    for path in [master_key_path(data), next_key_path(data)] {
        if is_missing(&path) {
            continue;
        }
        state = KeyState::Other;
        if let Ok(key) = MasterKey::read(&path)
            && fits(store.secret(&key, SENTINEL).await)?
        {
            return Ok(KeyState::Fits);
        }
    }
    Ok(state)
}

/// Makes a key that agents obey.
pub(crate) fn new_signing_key() -> Result<Zeroizing<String>, ProgramError> {
    let made = SigningKey::generate_written().map_err(|_| ProgramError::Random)?;
    Ok(Zeroizing::new(made.1))
}

/// Makes a credential for this machine's gateway.
pub(crate) fn new_credential() -> Result<Zeroizing<String>, ProgramError> {
    let made = Credential::generate().map_err(|_| ProgramError::Random)?;
    Ok(Zeroizing::new(made.1))
}

/// The secret of this name; a new one where there is none.
pub(crate) async fn secret(
    changes: &mut Transaction,
    master: &MasterKey,
    name: &'static str,
    make: fn() -> Result<Zeroizing<String>, ProgramError>,
) -> Result<Zeroizing<String>, ProgramError> {
    if let Some(bytes) = changes.secret(master, name).await? {
        let text = String::from_utf8(bytes.to_vec()).map_err(|_| ProgramError::Secret(name))?;
        return Ok(Zeroizing::new(text));
    }
    let made = make()?;
    changes.put_secret(master, name, made.as_bytes()).await?;
    Ok(made)
}
