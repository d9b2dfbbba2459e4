//! Secrets at rest: sealed with the master key, each bound to its name.

use std::path::Path;

use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement};
use crate::error::StoreError;
use crate::token::hex;

const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;

/// The name of the secret that shows whether a master key is the one that sealed the others.
pub const SENTINEL: &str = "sentinel";

/// What it holds.
const SENTINEL_TEXT: &[u8] = b"glovebox";

/// The key that seals all secrets of one installation. It is in no database and in no backup.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; KEY_BYTES]>);

/// A secret as it is stored: version, nonce and ciphertext in hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sealed(String);

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey(…)")
    }
}

impl MasterKey {
    /// Makes a new one.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn random() -> Result<Self, StoreError> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new()
            .fill(key.as_mut())
            .map_err(|_| StoreError::Random)?;
        Ok(Self(key))
    }

    /// Reads one as [`MasterKey::to_text`] writes it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(unhex(text.trim())?);
        let key: [u8; KEY_BYTES] = bytes.as_slice().try_into().ok()?;
        Some(Self(Zeroizing::new(key)))
    }

    /// The key as 64 hexadecimal digits, for its file.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(self.0.as_ref()))
    }

    /// Reads the key from a file that only its owner may read.
    ///
    /// # Errors
    /// When it cannot be read, is readable by others, or holds no key.
    pub fn read(path: &Path) -> Result<Self, StoreError> {
        use std::os::unix::fs::PermissionsExt as _;
        let refused = |why: String| StoreError::MasterKey {
            path: path.into(),
            why,
        };
        let metadata = match fs_err::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(refused("it is not there".into()));
            }
            Err(error) => return Err(refused(error.to_string())),
        };
        let mode = metadata.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(refused(format!(
                "others may read it (mode {:o}); run `chmod 600` on it",
                mode & 0o777
            )));
        }
        let text = fs_err::read_to_string(path).map_err(|error| refused(error.to_string()))?;
        let text = Zeroizing::new(text);
        Self::parse(&text).ok_or_else(|| refused("it is not 64 hexadecimal digits".into()))
    }

    /// Writes the key into a new file that only its owner may read. Whoever looks meanwhile sees
    /// nothing or the whole key.
    ///
    /// # Errors
    /// When there is such a file already, or it cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), StoreError> {
        use std::io::Write as _;
        let refused = |error: std::io::Error| StoreError::MasterKey {
            path: path.into(),
            why: error.to_string(),
        };
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new()
            .prefix(".master.key.")
            .tempfile_in(folder)
            .map_err(refused)?;
        file.write_all(self.to_text().as_bytes()).map_err(refused)?;
        file.as_file().sync_all().map_err(refused)?;
        file.persist_noclobber(path)
            .map_err(|error| refused(error.error))?;
        // The name has to outlast a crash, too.
        fs_err::File::open(folder)
            .and_then(|folder| folder.sync_all())
            .map_err(refused)
    }

    /// Seals a secret under its name. It opens under no other.
    ///
    /// # Errors
    /// When the system gives no random numbers.
    pub fn seal(&self, name: &str, secret: &[u8]) -> Result<Sealed, StoreError> {
        let mut nonce = [0; NONCE_BYTES];
        SystemRandom::new()
            .fill(&mut nonce)
            .map_err(|_| StoreError::Random)?;
        let payload = Payload {
            msg: secret,
            aad: name.as_bytes(),
        };
        let sealed = self
            .cipher()
            .encrypt(&XNonce::from(nonce), payload)
            .map_err(|_| StoreError::Sealed { name: name.into() })?;
        Ok(Sealed(format!("1:{}{}", hex(&nonce), hex(&sealed))))
    }

    /// Opens a secret that was sealed under this name.
    ///
    /// # Errors
    /// When it was not, or with another key, or was altered.
    pub fn unseal(&self, name: &str, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, StoreError> {
        let refused = || StoreError::Sealed { name: name.into() };
        let text = sealed.0.strip_prefix("1:").ok_or_else(refused)?;
        let bytes = unhex(text).ok_or_else(refused)?;
        let (nonce, ciphertext) = bytes.split_at_checked(NONCE_BYTES).ok_or_else(refused)?;
        let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| refused())?;
        let payload = Payload {
            msg: ciphertext,
            aad: name.as_bytes(),
        };
        self.cipher()
            .decrypt(&XNonce::from(nonce), payload)
            .map(Zeroizing::new)
            .map_err(|_| refused())
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&Key::from(*self.0))
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}

const READ: &str = "SELECT sealed FROM secrets WHERE name = $1";

impl Store {
    /// The secret of this name, opened.
    ///
    /// # Errors
    /// When it cannot be opened with this key, or the database does not answer.
    pub async fn secret(
        &self,
        key: &MasterKey,
        name: &str,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let row = sqlx::query(READ)
            .bind(name)
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("reading a secret"))?;
        row.map(|row| key.unseal(name, &Sealed(row.text("sealed")?)))
            .transpose()
    }

    /// Whether a master key is the one of this database. A database without any secret takes it
    /// for its own from now on.
    ///
    /// # Errors
    /// When it is another one, or the database does not answer.
    pub async fn adopt_master_key(&self, key: &MasterKey) -> Result<(), StoreError> {
        let mut changes = self.begin().await?;
        if changes.adopt_master_key(key).await? {
            return changes.commit().await;
        }
        drop(changes);
        match self.secret(key, SENTINEL).await? {
            Some(_) => Ok(()),
            None => Err(StoreError::Sealed {
                name: SENTINEL.into(),
            }),
        }
    }

    /// Whether the database holds no secret yet.
    ///
    /// # Errors
    /// When it does not answer.
    pub async fn has_secrets(&self) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT COUNT(*) AS n FROM secrets")
            .fetch_one(&self.pool)
            .await
            .map_err(statement("counting secrets"))?;
        Ok(row.number("n")? > 0)
    }
}

impl Transaction {
    /// Makes a master key the database's own, where it has no secret yet. Says whether it did. Of
    /// several that do it at once one does; the others wait for its changes.
    ///
    /// # Errors
    /// When the sentinel cannot be sealed, or a statement fails.
    pub async fn adopt_master_key(&mut self, key: &MasterKey) -> Result<bool, StoreError> {
        let sealed = key.seal(SENTINEL, SENTINEL_TEXT)?;
        // A row of that name holds everybody else up, where there are none to be held.
        let done = sqlx::query(
            "INSERT INTO secrets (name, sealed, changed_at) SELECT $1, $2, CAST($3 AS BIGINT) \
             WHERE NOT EXISTS (SELECT 1 FROM secrets) ON CONFLICT (name) DO NOTHING",
        )
        .bind(SENTINEL)
        .bind(sealed.0)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("keeping the sentinel of the master key"))?;
        Ok(done.rows_affected() > 0)
    }

    /// The secret of this name, opened, as these changes see it.
    ///
    /// # Errors
    /// When it cannot be opened with this key, or the statement fails.
    pub async fn secret(
        &mut self,
        key: &MasterKey,
        name: &str,
    ) -> Result<Option<Zeroizing<Vec<u8>>>, StoreError> {
        let row = sqlx::query(READ)
            .bind(name)
            .fetch_optional(&mut *self.inner)
            .await
            .map_err(statement("reading a secret"))?;
        row.map(|row| key.unseal(name, &Sealed(row.text("sealed")?)))
            .transpose()
    }

    /// Keeps a secret under its name, in place of the one that was there.
    ///
    /// # Errors
    /// When it cannot be sealed, or the statement fails.
    pub async fn put_secret(
        &mut self,
        key: &MasterKey,
        name: &str,
        secret: &[u8],
    ) -> Result<(), StoreError> {
        let sealed = key.seal(name, secret)?;
        sqlx::query(
            "INSERT INTO secrets (name, sealed, changed_at) VALUES ($1, $2, $3) \
             ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, \
             changed_at = excluded.changed_at",
        )
        .bind(name)
        .bind(sealed.0)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("keeping a secret"))?;
        Ok(())
    }

    /// Forgets the secret of this name, if there is one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_secret(&mut self, name: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM secrets WHERE name = $1")
            .bind(name)
            .execute(&mut *self.inner)
            .await
            .map_err(statement("forgetting a secret"))?;
        Ok(())
    }

    /// Takes another master key for the database's own. Secrets that the present key opens are
    /// sealed with it; all others are forgotten. Gives the names of those.
    ///
    /// # Errors
    /// When one cannot be sealed, or a statement fails.
    pub async fn change_master_key(
        &mut self,
        present: Option<&MasterKey>,
        key: &MasterKey,
    ) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query("SELECT name, sealed FROM secrets ORDER BY name")
            .fetch_all(&mut *self.inner)
            .await
            .map_err(statement("reading all secrets"))?;
        sqlx::query("DELETE FROM secrets")
            .execute(&mut *self.inner)
            .await
            .map_err(statement("forgetting all secrets"))?;
        let mut lost = Vec::new();
        for row in rows {
            let (name, sealed) = (row.text("name")?, Sealed(row.text("sealed")?));
            match present.and_then(|present| present.unseal(&name, &sealed).ok()) {
                Some(secret) => self.put_secret(key, &name, &secret).await?,
                None => lost.push(name),
            }
        }
        self.put_secret(key, SENTINEL, SENTINEL_TEXT).await?;
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_opens_under_its_own_name_and_key_only() {
        let (key, other) = (MasterKey::random().unwrap(), MasterKey::random().unwrap());
        let sealed = key.seal("one", b"word").unwrap();
        assert_eq!(&**key.unseal("one", &sealed).unwrap(), b"word");
        assert!(key.unseal("two", &sealed).is_err());
        assert!(other.unseal("one", &sealed).is_err());
        let text = sealed.0.clone();
        for at in 2..text.len() {
            let mut altered = text.clone().into_bytes();
            altered[at] = if altered[at] == b'0' { b'1' } else { b'0' };
            let altered = Sealed(String::from_utf8(altered).unwrap());
            assert!(key.unseal("one", &altered).is_err(), "at {at}");
        }
        for bad in ["", "1:", "1:zz", "2:00", "1:0011"] {
            assert!(key.unseal("one", &Sealed(bad.into())).is_err());
        }
        assert!(!format!("{key:?}").contains(&**key.to_text()));
    }

    #[test]
    fn the_file_of_a_key_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let key = MasterKey::random().unwrap();
        key.write(&path).unwrap();
        assert_eq!(MasterKey::read(&path).unwrap().to_text(), key.to_text());
        assert!(key.write(&path).is_err(), "a key is never written over");
        let mode = std::fs::Permissions::from_mode(0o640);
        fs_err::set_permissions(&path, mode).unwrap();
        let refused = MasterKey::read(&path).unwrap_err().to_string();
        assert!(refused.contains("mode 640"), "{refused}");
    }
}
