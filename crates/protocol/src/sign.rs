//! Request signing: what is signed, how, and what a receiver checks.
//!
//! A signature binds one request to one receiver in one of its lives: installation, audience and
//! boot epoch are in it, so that a request can be neither replayed after a restart nor sent to
//! another sandbox. This module holds no clock; callers pass the time in.

mod canonical;
mod credential;
mod headers;
mod keys;
mod verify;

pub use canonical::{BodyDigest, Envelope};
pub use credential::{Credential, Credentials, InvalidCredential};
pub use headers::{HeaderFault, Signature, SignedHeaders, gateway_names, names};
pub use keys::{InvalidKey, InvalidSigningKey, KeyId, PublicKey, SigningKey};
pub use verify::{Now, Refusal, Signers, Verified, Verifier, WARN_MS, WINDOW_MS};

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The operating system gave no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct NoRandomness;

macro_rules! random_token {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name([u8; 16]);

        impl $name {
            /// Draws a new value from the operating system.
            ///
            /// # Errors
            /// When the operating system has no random bytes to give.
            pub fn random() -> Result<Self, NoRandomness> {
                let mut bytes = [0; 16];
                ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes)
                    .map_err(|_| NoRandomness)?;
                Ok(Self(bytes))
            }

            /// The 128 bits.
            #[must_use]
            pub const fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write_hex(f, &self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidHex;

            fn from_str(text: &str) -> Result<Self, InvalidHex> {
                parse_hex(text).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidHex;

            fn try_from(text: String) -> Result<Self, InvalidHex> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(token: $name) -> Self {
                token.to_string()
            }
        }
    };
}

random_token! {
    /// Which life of a receiver a request is meant for; drawn anew at each start, so that
    /// nonces need to be remembered only while the process lives.
    Epoch
}
random_token! {
    /// Makes each request unlike every other.
    Nonce
}

/// A field was not lowercase hexadecimal of the right length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not lowercase hexadecimal of the right length")]
pub struct InvalidHex;

pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

pub(crate) fn parse_hex<const N: usize>(text: &str) -> Result<[u8; N], InvalidHex> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(InvalidHex),
    };
    if text.len() != N * 2 {
        return Err(InvalidHex);
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Ok(bytes)
}
