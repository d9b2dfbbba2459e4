//! Records: how bytes travel between a gateway and an agent that has only its standard streams.
//!
//! Container engines join an agent's standard input and output to whoever attaches. A connection
//! of before may have left half a record in either direction, and what was on its way may still
//! come. So every attach begins with a [`hello`] that can be found among any bytes, and each
//! record after it carries the tag of its session: what has another tag is not of this session.
//!
//! ```text
//! gateway → agent    hello   = magic 16 · nonce 32             repeated until it is acknowledged
//! agent → gateway    record  = tag 8 · kind 1 · length 4 · payload   (tag: the nonce's first 8)
//! ```
//!
//! The magic of a sandbox is drawn when it is made and known to nobody in it, so that no content
//! can pass for a hello. Only the very first hello uses one that everybody knows; see
//! [`Magic::FIRST`].

mod agent_side;
mod gateway_side;
mod window;

pub use agent_side::{FromGateway, FromGatewayDecoder};
pub use gateway_side::{FromAgentDecoder, OutOfStep};

use serde::{Deserialize, Serialize};

use crate::agent_config::AgentConfig;

/// Largest payload of one record, in bytes.
pub const MAX_PAYLOAD: usize = 64 * 1024;

/// Bytes in front of each payload.
pub const HEADER: usize = 13;

/// Bytes of a hello.
pub const HELLO: usize = MAGIC + NONCE;

const MAGIC: usize = 16;
const NONCE: usize = 32;
const TAG: usize = 8;

/// What announces a hello among other bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Magic([u8; MAGIC]);

impl Magic {
    /// The one that an agent listens for until it has its configuration, in which the magic of
    /// all later hellos comes.
    pub const FIRST: Self = Self(*b"glovebox-agent/1");

    /// One made of these bytes, which have to be random.
    #[must_use]
    pub const fn new(random: [u8; MAGIC]) -> Self {
        Self(random)
    }

    /// Its form in words, for whoever has to remember it.
    #[must_use]
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The one that [`Magic::to_hex`] wrote down.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut magic = [0; MAGIC];
        if text.len() != 2 * MAGIC || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        for (byte, digits) in magic.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(magic))
    }
}

impl std::fmt::Debug for Magic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Magic(..)")
    }
}

impl Serialize for Magic {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for Magic {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::from_hex(&text).ok_or_else(|| serde::de::Error::custom("not 32 hexadecimal digits"))
    }
}

/// What makes one attach different from all others. Random.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Nonce(pub [u8; NONCE]);

impl Nonce {
    /// The tag of the session that begins with this nonce.
    #[must_use]
    pub fn tag(&self) -> Tag {
        let mut tag = [0; TAG];
        tag.copy_from_slice(&self.0[..TAG]);
        Tag(tag)
    }
}

/// What each record of one session begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tag([u8; TAG]);

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The agent has heard the hello; the payload is its nonce.
    Ack,
    /// The agent does not know any more where a record begins, or has heard nothing for too long:
    /// the session is over, and a hello begins the next.
    Desync,
    /// From the gateway, once: an [`AttachedConfig`].
    Config,
    /// The agent has its configuration and serves.
    Ready,
    /// The agent cannot start; the payload says why, in words. The last record of an agent.
    Refused,
    /// Bytes of the multiplexed connection.
    Data,
    /// The gateway is still there; nothing else.
    Alive,
}

impl Kind {
    const ALL: [Self; 7] = [
        Self::Ack,
        Self::Desync,
        Self::Config,
        Self::Ready,
        Self::Refused,
        Self::Data,
        Self::Alive,
    ];

    const fn byte(self) -> u8 {
        match self {
            Self::Ack => 1,
            Self::Desync => 2,
            Self::Config => 3,
            Self::Ready => 4,
            Self::Refused => 5,
            Self::Data => 6,
            Self::Alive => 7,
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.byte() == byte)
    }
}

/// A payload is over [`MAX_PAYLOAD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record of {0} bytes is over the limit of {MAX_PAYLOAD}")]
pub struct TooLong(pub usize);

/// What an agent that is reached through its standard streams is told first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttachedConfig {
    /// What announces every later hello.
    pub magic: Magic,
    /// The agent's configuration. The descriptors in it do not count: the agent finds its own.
    pub agent: AgentConfig,
}

/// The bytes that begin a session.
#[must_use]
pub fn hello(magic: &Magic, nonce: &Nonce) -> [u8; HELLO] {
    let mut hello = [0; HELLO];
    hello[..MAGIC].copy_from_slice(&magic.0);
    hello[MAGIC..].copy_from_slice(&nonce.0);
    hello
}

/// One record as it travels.
///
/// # Errors
/// When the payload is longer than [`MAX_PAYLOAD`].
pub fn encode(tag: Tag, kind: Kind, payload: &[u8]) -> Result<Vec<u8>, TooLong> {
    let length = u32::try_from(payload.len())
        .ok()
        .filter(|length| *length as usize <= MAX_PAYLOAD)
        .ok_or(TooLong(payload.len()))?;
    let mut record = Vec::with_capacity(HEADER + payload.len());
    record.extend_from_slice(&tag.0);
    record.push(kind.byte());
    record.extend_from_slice(&length.to_be_bytes());
    record.extend_from_slice(payload);
    Ok(record)
}

/// What stands at the beginning of some bytes.
enum Parsed {
    /// Not enough yet.
    Part,
    /// No record of this session.
    Foreign,
    /// A record, and its length with header.
    Record(Kind, usize),
}

/// Looks at no length before it has looked at the tag, and believes none over the limit.
fn parse(bytes: &[u8], tag: Tag) -> Parsed {
    let seen = bytes.len().min(TAG);
    if bytes[..seen] != tag.0[..seen] {
        return Parsed::Foreign;
    }
    let Some(header) = bytes.first_chunk::<HEADER>() else {
        return Parsed::Part;
    };
    let [.., kind, a, b, c, d] = *header;
    let length = u32::from_be_bytes([a, b, c, d]) as usize;
    match Kind::from_byte(kind) {
        Some(kind) if length <= MAX_PAYLOAD => match bytes.len() >= HEADER + length {
            true => Parsed::Record(kind, HEADER + length),
            false => Parsed::Part,
        },
        _ => Parsed::Foreign,
    }
}
