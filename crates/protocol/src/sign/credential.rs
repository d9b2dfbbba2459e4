//! The credential that a server shows a gateway: a secret that both hold, 256 random bits.

use std::fmt;
use std::str::FromStr;

use ring::hmac;

use super::keys::KeyId;
use super::{Envelope, NoRandomness, Signers, parse_hex};

/// Starts the written form, so that a credential that lies about is known for one.
const PREFIX: &str = "gbg_";

/// Goes before the secret where its id is computed.
const ID_DOMAIN: &[u8] = b"glovebox/1/credential-id";

/// A text was no credential. It is not shown: it may be one with a slip in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a credential: one is `gbg_` and 64 lowercase hexadecimal digits")]
pub struct InvalidCredential;

/// A gateway's credential. Neither printed nor serialised.
#[derive(Clone)]
pub struct Credential {
    key: hmac::Key,
    id: KeyId,
}

impl Credential {
    /// Makes a new credential, and its written form, which is not to be had again.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub fn generate() -> Result<(Self, String), NoRandomness> {
        let mut secret = [0; 32];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut secret)
            .map_err(|_| NoRandomness)?;
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok((Self::of(&secret), format!("{PREFIX}{digits}")))
    }

    fn of(secret: &[u8; 32]) -> Self {
        let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
        digest.update(ID_DOMAIN);
        digest.update(secret);
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, secret),
            id: KeyId::from_sha256(&digest.finish()),
        }
    }

    /// Names the credential without showing it.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Signs a request to a gateway.
    #[must_use]
    pub fn sign(&self, envelope: &Envelope<'_>) -> [u8; 32] {
        let tag = hmac::sign(&self.key, &envelope.canonical_for_gateway());
        let mut signature = [0; 32];
        signature.copy_from_slice(tag.as_ref());
        signature
    }

    /// Whether `signature` is this credential's over `envelope`. Takes equally long whatever is
    /// wrong with it.
    #[must_use]
    pub fn has_signed(&self, envelope: &Envelope<'_>, signature: &[u8; 32]) -> bool {
        hmac::verify(&self.key, &envelope.canonical_for_gateway(), signature).is_ok()
    }
}

impl FromStr for Credential {
    type Err = InvalidCredential;

    fn from_str(text: &str) -> Result<Self, InvalidCredential> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidCredential)?;
        let secret = parse_hex(digits).map_err(|_| InvalidCredential)?;
        Ok(Self::of(&secret))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credential({})", self.id)
    }
}

/// The credentials that a gateway accepts: one, or two during a rotation, the new one first.
#[derive(Debug, Clone)]
pub struct Credentials(pub Vec<Credential>);

impl Signers for Credentials {
    type Signature = [u8; 32];

    fn have_signed(&self, envelope: &Envelope<'_>, signature: &[u8; 32]) -> bool {
        self.0.iter().any(|credential| {
            credential.id == envelope.key && credential.has_signed(envelope, signature)
        })
    }
}
