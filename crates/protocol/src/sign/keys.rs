//! Ed25519 keys: the private half that a server or a command line holds, the public half that
//! an agent is given.

use std::fmt;

use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use serde::{Deserialize, Serialize};

use super::{Envelope, InvalidHex, NoRandomness, parse_hex, write_hex};

/// A key was not 32 bytes of lowercase hexadecimal, or no Ed25519 key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an Ed25519 key")]
pub struct InvalidKey;

/// Names a key without showing it: the first eight bytes of the SHA-256 of its public half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// The id of what has this digest: its first eight bytes.
    pub(super) fn from_sha256(digest: &ring::digest::Digest) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&digest.as_ref()[..8]);
        Self(id)
    }

    /// The 64 bits.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl std::str::FromStr for KeyId {
    type Err = InvalidHex;

    fn from_str(text: &str) -> Result<Self, InvalidHex> {
        parse_hex(text).map(Self)
    }
}

impl TryFrom<String> for KeyId {
    type Error = InvalidHex;

    fn try_from(text: String) -> Result<Self, InvalidHex> {
        text.parse()
    }
}

impl From<KeyId> for String {
    fn from(id: KeyId) -> Self {
        id.to_string()
    }
}

/// The points of small order, without their sign, in every way in which they can be written.
const WEAK: [&str; 7] = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
];

/// The public half of a signing key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The short name of this key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        KeyId::from_sha256(&ring::digest::digest(&ring::digest::SHA256, &self.0))
    }

    /// Whether it is one of the few points for which signatures can be made without a private key.
    /// No key that was made as it should be is one.
    #[must_use]
    pub fn is_weak(&self) -> bool {
        let mut point = self.0;
        // The sign of the other coordinate; with either sign the point is as weak.
        point[31] &= 0x7f;
        WEAK.iter().any(|weak| parse_hex(weak) == Ok(point))
    }

    /// Whether `signature` is this key's over `envelope`.
    #[must_use]
    pub fn has_signed(&self, envelope: &Envelope<'_>, signature: &[u8; 64]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0)
            .verify(&envelope.canonical(), signature)
            .is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl std::str::FromStr for PublicKey {
    type Err = InvalidHex;

    fn from_str(text: &str) -> Result<Self, InvalidHex> {
        parse_hex(text).map(Self)
    }
}

impl TryFrom<String> for PublicKey {
    type Error = InvalidHex;

    fn try_from(text: String) -> Result<Self, InvalidHex> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// Starts the written form of a signing key, so that one that lies about is known for one.
const PREFIX: &str = "gbs_";

/// A text was no signing key. It is not shown: it may be one with a slip in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a signing key: one is `gbs_` and 64 lowercase hexadecimal digits")]
pub struct InvalidSigningKey;

/// A private signing key. It cannot be printed, copied out or serialised.
pub struct SigningKey {
    pair: Ed25519KeyPair,
    public: PublicKey,
    id: KeyId,
}

impl SigningKey {
    /// Makes a new key that lives only in this process.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub fn generate() -> Result<Self, NoRandomness> {
        let mut seed = [0; 32];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut seed)
            .map_err(|_| NoRandomness)?;
        Self::from_seed(&seed).map_err(|InvalidKey| NoRandomness)
    }

    /// Makes a new key, and its written form, which is not to be had again.
    ///
    /// # Errors
    /// When the operating system has no random bytes to give.
    pub fn generate_written() -> Result<(Self, String), NoRandomness> {
        let mut seed = [0; 32];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut seed)
            .map_err(|_| NoRandomness)?;
        let digits: String = seed.iter().map(|byte| format!("{byte:02x}")).collect();
        let key = Self::from_seed(&seed).map_err(|InvalidKey| NoRandomness)?;
        Ok((key, format!("{PREFIX}{digits}")))
    }

    /// The key that belongs to a stored seed.
    ///
    /// # Errors
    /// When the seed is no Ed25519 seed.
    pub fn from_seed(seed: &[u8; 32]) -> Result<Self, InvalidKey> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| InvalidKey)?;
        let mut public = [0; 32];
        public.copy_from_slice(pair.public_key().as_ref());
        let public = PublicKey(public);
        let id = public.id();
        Ok(Self { pair, public, id })
    }

    /// The public half.
    #[must_use]
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The short name of this key.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// Signs one request.
    #[must_use]
    pub fn sign(&self, envelope: &Envelope<'_>) -> [u8; 64] {
        let mut signature = [0; 64];
        signature.copy_from_slice(self.pair.sign(&envelope.canonical()).as_ref());
        signature
    }
}

impl std::str::FromStr for SigningKey {
    type Err = InvalidSigningKey;

    fn from_str(text: &str) -> Result<Self, InvalidSigningKey> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidSigningKey)?;
        let seed = parse_hex(digits).map_err(|_| InvalidSigningKey)?;
        Self::from_seed(&seed).map_err(|InvalidKey| InvalidSigningKey)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.id)
    }
}
