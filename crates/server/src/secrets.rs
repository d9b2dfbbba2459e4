//! The master key, and the secrets that the server makes for itself.

use std::path::{Path, PathBuf};

use glovebox_protocol::sign::{Credential, SigningKey};
use glovebox_store::{MasterKey, SENTINEL, Store, StoreError, Transaction};
use zeroize::Zeroizing;

use crate::program::ProgramError;

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

/// The master key of the data folder; a new one where the database has no secret yet.
///
/// # Errors
/// When it is not there and there are secrets, or is not the one that sealed them.
pub async fn master_key(store: &Store, data: &Path) -> Result<MasterKey, ProgramError> {
    let path = master_key_path(data);
    let is_missing = fs_err::symlink_metadata(&path).is_err();
    if is_missing && !store.has_secrets().await? {
        MasterKey::random()?.write(&path)?;
    }
    let key = MasterKey::read(&path)?;
    store.adopt_master_key(&key).await?;
    Ok(key)
}

/// Looks whether the master key of the data folder is the one of the database.
///
/// # Errors
/// When the database does not answer.
pub async fn key_state(store: &Store, data: &Path) -> Result<KeyState, StoreError> {
    let path = master_key_path(data);
    if !store.has_secrets().await? {
        return Ok(KeyState::Fits);
    }
    if fs_err::symlink_metadata(&path).is_err() {
        return Ok(KeyState::Missing);
    }
    let Ok(key) = MasterKey::read(&path) else {
        return Ok(KeyState::Other);
    };
    match store.secret(&key, SENTINEL).await {
        Ok(Some(_)) => Ok(KeyState::Fits),
        Ok(None) | Err(StoreError::Sealed { .. }) => Ok(KeyState::Other),
        Err(error) => Err(error),
    }
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
