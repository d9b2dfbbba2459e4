//! The headers that carry a signature.

use super::{BodyDigest, Epoch, KeyId, Nonce, parse_hex};

/// Header names, lowercase as HTTP libraries hold them.
pub mod names {
    /// Which key signed.
    pub const KEY: &str = "x-glovebox-key";
    /// Which life of the receiver is meant. A 401 answer carries the receiver's present one.
    pub const EPOCH: &str = "x-glovebox-epoch";
    /// When the request was signed: whole milliseconds since 1970 (UTC).
    pub const TIME: &str = "x-glovebox-time";
    /// 128 random bits, hexadecimal.
    pub const NONCE: &str = "x-glovebox-nonce";
    /// SHA-256 of the body, hexadecimal.
    pub const CONTENT_SHA256: &str = "x-glovebox-content-sha256";
    /// The Ed25519 signature, hexadecimal.
    pub const SIGNATURE: &str = "x-glovebox-signature";

    /// All of them.
    pub const ALL: [&str; 6] = [KEY, EPOCH, TIME, NONCE, CONTENT_SHA256, SIGNATURE];
}

/// The signature of one request as its headers give it; nothing in it is believed yet.
#[derive(Debug, Clone, Copy)]
pub struct SignedHeaders {
    /// Which key is said to have signed.
    pub key: KeyId,
    /// Which life of the receiver is meant.
    pub epoch: Epoch,
    /// When it was signed, in milliseconds since 1970 (UTC).
    pub unix_ms: i64,
    /// What makes the request unique.
    pub nonce: Nonce,
    /// The body's SHA-256.
    pub body: BodyDigest,
    /// The signature itself.
    pub signature: [u8; 64],
}

/// A signature header is absent, doubled or malformed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeaderFault {
    /// The header is not there.
    #[error("the header `{0}` is missing")]
    Missing(&'static str),
    /// The header stands there more than once.
    #[error("the header `{0}` is given more than once")]
    Doubled(&'static str),
    /// The header does not have the form it must have.
    #[error("the header `{0}` is malformed")]
    Malformed(&'static str),
}

impl SignedHeaders {
    /// Reads the signature headers. `values` answers with every value that a header has.
    ///
    /// # Errors
    /// When a header is absent, doubled or malformed.
    pub fn parse<'h, I>(values: impl Fn(&'static str) -> I) -> Result<Self, HeaderFault>
    where
        I: Iterator<Item = &'h [u8]>,
    {
        let one = |name: &'static str| -> Result<&'h str, HeaderFault> {
            let mut found = values(name);
            let first = found.next().ok_or(HeaderFault::Missing(name))?;
            if found.next().is_some() {
                return Err(HeaderFault::Doubled(name));
            }
            std::str::from_utf8(first).map_err(|_| HeaderFault::Malformed(name))
        };
        let malformed = |name| move |_| HeaderFault::Malformed(name);
        Ok(Self {
            key: one(names::KEY)?.parse().map_err(malformed(names::KEY))?,
            epoch: one(names::EPOCH)?
                .parse()
                .map_err(malformed(names::EPOCH))?,
            unix_ms: parse_time(one(names::TIME)?).ok_or(HeaderFault::Malformed(names::TIME))?,
            nonce: one(names::NONCE)?
                .parse()
                .map_err(malformed(names::NONCE))?,
            body: one(names::CONTENT_SHA256)?
                .parse()
                .map_err(malformed(names::CONTENT_SHA256))?,
            signature: parse_hex(one(names::SIGNATURE)?).map_err(malformed(names::SIGNATURE))?,
        })
    }

    /// The headers to send, as name and value.
    #[must_use]
    pub fn to_pairs(&self) -> [(&'static str, String); 6] {
        [
            (names::KEY, self.key.to_string()),
            (names::EPOCH, self.epoch.to_string()),
            (names::TIME, self.unix_ms.to_string()),
            (names::NONCE, self.nonce.to_string()),
            (names::CONTENT_SHA256, self.body.to_string()),
            (
                names::SIGNATURE,
                self.signature.iter().map(|b| format!("{b:02x}")).collect(),
            ),
        ]
    }
}

/// Accepts plain digits only: a sign, a fraction or a leading zero would give one time two
/// spellings.
fn parse_time(text: &str) -> Option<i64> {
    let plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    plain.then(|| text.parse().ok()).flatten()
}
