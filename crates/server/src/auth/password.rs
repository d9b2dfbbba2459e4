//! Passwords, hashed with Argon2id. Hashing takes memory and time on purpose, so that only a few
//! are hashed at once.

use std::sync::Arc;

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Argon2, PasswordHash};
use ring::rand::{SecureRandom as _, SystemRandom};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// The shortest password, in characters.
const MIN_CHARACTERS: usize = 12;

/// The longest one, in bytes: nobody makes the server hash megabytes.
const MAX_BYTES: usize = 1024;

/// How many are hashed at once.
const AT_ONCE: usize = 2;

/// How many may wait for their turn beside those: who comes then is told so at once.
const WAITING: usize = 64;

/// Hashes passwords. Clones share the limit.
#[derive(Clone)]
pub(crate) struct Passwords {
    turns: Arc<Semaphore>,
    places: Arc<Semaphore>,
}

/// Why a password cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// It is too short or too long.
    #[error("a password has {MIN_CHARACTERS} characters at least and {MAX_BYTES} bytes at most")]
    Length,
    /// Too many others are being looked at.
    #[error("too many passwords are being looked at just now")]
    Busy,
    /// It could not be hashed.
    #[error("the password could not be hashed")]
    Hash,
}

impl Default for Passwords {
    fn default() -> Self {
        Self::new()
    }
}

impl Passwords {
    /// Hashes on threads of their own.
    #[must_use]
    pub(crate) fn new() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            places: Arc::new(Semaphore::new(AT_ONCE + WAITING)),
        }
    }

    /// The hash of a new password, in PHC form.
    ///
    /// # Errors
    /// When it cannot be used.
    pub(crate) async fn hash(&self, password: Zeroizing<String>) -> Result<String, PasswordError> {
        if password.chars().count() < MIN_CHARACTERS || password.len() > MAX_BYTES {
            return Err(PasswordError::Length);
        }
        self.on_a_thread(move || {
            let mut salt = [0; 16];
            SystemRandom::new()
                .fill(&mut salt)
                .map_err(|_| PasswordError::Hash)?;
            Argon2::default()
                .hash_password_with_salt(password.as_bytes(), &salt)
                .map(|hash| hash.to_string())
                .map_err(|_| PasswordError::Hash)
        })
        .await?
    }

    /// Whether a password is the one of a hash. Without a hash it takes as long and is not.
    ///
    /// # Errors
    /// When it could not be looked at.
    pub(crate) async fn verify(
        &self,
        password: Zeroizing<String>,
        hash: Option<String>,
    ) -> Result<bool, PasswordError> {
        if password.len() > MAX_BYTES {
            return Ok(false);
        }
        let is_known = hash.is_some();
        let hash = hash.unwrap_or_else(|| NOBODYS.into());
        let verified = self
            .on_a_thread(move || {
                PasswordHash::new(&hash).is_ok_and(|hash| {
                    Argon2::default()
                        .verify_password(password.as_bytes(), &hash)
                        .is_ok()
                })
            })
            .await;
        Ok(verified? && is_known)
    }

    async fn on_a_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, PasswordError> {
        let _place = self.places.try_acquire().map_err(|_| PasswordError::Busy)?;
        let _turn = self
            .turns
            .acquire()
            .await
            .map_err(|_| PasswordError::Hash)?;
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| PasswordError::Hash)
    }
}

/// A hash of the usual cost that no password is known of: whoever asks for an address that nobody
/// has waits as long as for one that somebody has.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$Z2xvdmVib3hnbG92ZWJveA$\
                       mHcCvQ9AaHUdQmZ5U0J1Y2tldHNPZk5vdGhpbmdIZXJlMDA";

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Zeroizing<String> {
        Zeroizing::new(text.into())
    }

    #[tokio::test]
    async fn a_password_is_verified_by_its_hash_only() {
        let passwords = Passwords::new();
        let hash = passwords.hash(word("correct horse battery")).await.unwrap();
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        let verify = async |text: &str, hash| passwords.verify(word(text), hash).await.unwrap();
        assert!(verify("correct horse battery", Some(hash.clone())).await);
        assert!(!verify("correct horse batterz", Some(hash)).await);
        assert!(!verify("correct horse battery", None).await);
        assert!(!verify("correct horse battery", Some("nonsense".into())).await);
        assert!(PasswordHash::new(NOBODYS).is_ok());
    }

    #[tokio::test]
    async fn a_password_has_a_length() {
        let passwords = Passwords::new();
        for bad in ["", "short", "elevenchars", &"x".repeat(MAX_BYTES + 1)] {
            assert_eq!(
                passwords.hash(word(bad)).await,
                Err(PasswordError::Length),
                "{bad}"
            );
        }
    }
}
