//! The one form of a request that is signed.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::keys::KeyId;
use super::{Epoch, InvalidHex, Nonce, parse_hex, write_hex};
use crate::ids::InstallationId;

/// Starts the signed form of a request to an agent. Every purpose has a start of its own, so that
/// no signature of Glovebox can be taken for one of another purpose or version.
const TO_AGENT: &[u8] = b"glovebox/1/request";

/// Starts the signed form of a request to a gateway.
const TO_GATEWAY: &[u8] = b"glovebox/1/gateway-request";

/// The SHA-256 of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BodyDigest([u8; 32]);

impl BodyDigest {
    /// The digest of a body that is wholly in memory.
    #[must_use]
    pub fn of(body: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(ring::digest::digest(&ring::digest::SHA256, body).as_ref());
        Self(bytes)
    }

    /// A digest computed elsewhere, such as over a stream.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 256 bits.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BodyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(f, &self.0)
    }
}

impl std::str::FromStr for BodyDigest {
    type Err = InvalidHex;

    fn from_str(text: &str) -> Result<Self, InvalidHex> {
        parse_hex(text).map(Self)
    }
}

impl TryFrom<String> for BodyDigest {
    type Error = InvalidHex;

    fn try_from(text: String) -> Result<Self, InvalidHex> {
        text.parse()
    }
}

impl From<BodyDigest> for String {
    fn from(digest: BodyDigest) -> Self {
        digest.to_string()
    }
}

/// Everything of a request that its signature covers.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// Which installation sends and receives.
    pub installation: InstallationId,
    /// Who is to act: a sandbox id or a gateway id, as text.
    pub audience: &'a str,
    /// Which life of the receiver is meant.
    pub epoch: Epoch,
    /// The HTTP method, uppercase.
    pub method: &'a str,
    /// Path and query exactly as they stand in the request line.
    pub path_and_query: &'a str,
    /// Length of the body in bytes.
    pub content_length: u64,
    /// SHA-256 of the body.
    pub body: BodyDigest,
    /// When the request was signed, in milliseconds since 1970 (UTC).
    pub unix_ms: i64,
    /// Makes the request unique.
    pub nonce: Nonce,
    /// Which key signs.
    pub key: KeyId,
}

impl Envelope<'_> {
    /// The bytes that are signed for an agent: each field with its length in front, so that no two
    /// different requests have the same form.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        self.form(TO_AGENT)
    }

    /// The bytes that are signed for a gateway, in the same form.
    #[must_use]
    pub fn canonical_for_gateway(&self) -> Vec<u8> {
        self.form(TO_GATEWAY)
    }

    fn form(&self, domain: &[u8]) -> Vec<u8> {
        let installation = self.installation.to_string();
        let fields: [&[u8]; 11] = [
            domain,
            installation.as_bytes(),
            self.audience.as_bytes(),
            self.epoch.as_bytes(),
            self.method.as_bytes(),
            self.path_and_query.as_bytes(),
            &self.content_length.to_be_bytes(),
            self.body.as_bytes(),
            &self.unix_ms.to_be_bytes(),
            self.nonce.as_bytes(),
            self.key.as_bytes(),
        ];
        let size = fields.iter().map(|field| field.len() + 8).sum();
        let mut form = Vec::with_capacity(size);
        for field in fields {
            form.extend_from_slice(&(field.len() as u64).to_be_bytes());
            form.extend_from_slice(field);
        }
        form
    }
}
