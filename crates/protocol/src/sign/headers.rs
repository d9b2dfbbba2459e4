//! The headers that carry a signature.

use super::{BodyDigest, Epoch, InvalidHex, KeyId, Nonce, parse_hex};

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
    /// SHA-256 of the body, hexadecimal. One header for both signatures: there is one body.
    pub const CONTENT_SHA256: &str = "x-glovebox-content-sha256";
    /// The Ed25519 signature, hexadecimal.
    pub const SIGNATURE: &str = "x-glovebox-signature";

    /// All of them.
    pub const ALL: [&str; 6] = [KEY, EPOCH, TIME, NONCE, CONTENT_SHA256, SIGNATURE];
}

/// The names of the headers that only a gateway reads, and takes off what it passes on.
pub mod gateway_names {
    /// Which gateway answers. Stands on every 401 of a gateway, so that a sender can tell it from
    /// an agent's and learn whom to sign for.
    pub const GATEWAY: &str = "x-glovebox-gateway";
    /// Which installation the sender takes the gateway to belong to, and on a 401 the one that it
    /// does.
    pub const INSTALLATION: &str = "x-glovebox-installation";
    /// The protocol number that the sender speaks.
    pub const PROTOCOL: &str = "x-glovebox-protocol";
    /// In an answer: how far the sender's clock is ahead of the gateway's, in milliseconds, where
    /// that is more than [`WARN_MS`](crate::sign::WARN_MS).
    pub const CLOCK_OFF_MS: &str = "x-glovebox-clock-off-ms";
    /// Which credential signed.
    pub const CREDENTIAL: &str = "x-glovebox-gateway-credential";
    /// Which life of the gateway is meant. A 401 answer carries the present one.
    pub const EPOCH: &str = "x-glovebox-gateway-epoch";
    /// When the request was signed: whole milliseconds since 1970 (UTC).
    pub const TIME: &str = "x-glovebox-gateway-time";
    /// 128 random bits, hexadecimal.
    pub const NONCE: &str = "x-glovebox-gateway-nonce";
    /// The HMAC-SHA256, hexadecimal.
    pub const SIGNATURE: &str = "x-glovebox-gateway-signature";

    /// Those that make up a signature.
    pub const ALL: [&str; 5] = [CREDENTIAL, EPOCH, TIME, NONCE, SIGNATURE];
}

/// What a kind of signature looks like in headers.
pub trait Signature: Copy {
    /// Header names: of the key's id, the epoch, the time, the nonce and the signature.
    const NAMES: [&'static str; 5];

    /// Reads the hexadecimal form.
    ///
    /// # Errors
    /// When it is not lowercase hexadecimal of the right length.
    fn parse(text: &str) -> Result<Self, InvalidHex>;

    /// The bytes.
    fn bytes(&self) -> &[u8];
}

/// Ed25519, for agents.
impl Signature for [u8; 64] {
    const NAMES: [&'static str; 5] = [
        names::KEY,
        names::EPOCH,
        names::TIME,
        names::NONCE,
        names::SIGNATURE,
    ];

    fn parse(text: &str) -> Result<Self, InvalidHex> {
        parse_hex(text)
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// HMAC-SHA256, for gateways.
impl Signature for [u8; 32] {
    const NAMES: [&'static str; 5] = gateway_names::ALL;

    fn parse(text: &str) -> Result<Self, InvalidHex> {
        parse_hex(text)
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The signature of one request as its headers give it; nothing in it is believed yet.
#[derive(Debug, Clone, Copy)]
pub struct SignedHeaders<S = [u8; 64]> {
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
    pub signature: S,
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

impl<S: Signature> SignedHeaders<S> {
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
        let [key, epoch, time, nonce, signature] = S::NAMES;
        Ok(Self {
            key: one(key)?.parse().map_err(malformed(key))?,
            epoch: one(epoch)?.parse().map_err(malformed(epoch))?,
            unix_ms: parse_time(one(time)?).ok_or(HeaderFault::Malformed(time))?,
            nonce: one(nonce)?.parse().map_err(malformed(nonce))?,
            body: one(names::CONTENT_SHA256)?
                .parse()
                .map_err(malformed(names::CONTENT_SHA256))?,
            signature: S::parse(one(signature)?).map_err(malformed(signature))?,
        })
    }

    /// The headers to send, as name and value: the signature's own five, and that of the body.
    #[must_use]
    pub fn to_pairs(&self) -> [(&'static str, String); 6] {
        let [key, epoch, time, nonce, signature] = S::NAMES;
        let bytes = self.signature.bytes();
        [
            (key, self.key.to_string()),
            (epoch, self.epoch.to_string()),
            (time, self.unix_ms.to_string()),
            (nonce, self.nonce.to_string()),
            (names::CONTENT_SHA256, self.body.to_string()),
            (
                signature,
                bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
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
