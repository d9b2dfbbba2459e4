//! How a call of an agent or of a gateway can fail.

use glovebox_protocol::PROTOCOL_VERSION;
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::file::FileName;
use glovebox_protocol::frame::FrameFault;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::sign::NoRandomness;

/// How a call of an agent or of a gateway can fail. Says nothing of what was being asked: that is
/// the caller's to say.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no way to the other side. An agent's sandbox has ended then, as a rule.
    #[error("connecting")]
    Connect(#[source] std::io::Error),
    /// The connection broke.
    #[error("talking over the connection")]
    Transport(#[source] hyper::Error),
    /// The agent, or the gateway, understood and said no.
    #[error("{}", .0.message)]
    Refused(Box<ErrorBody>),
    /// The agent speaks another protocol number.
    #[error("the agent speaks protocol {theirs}; this program speaks {PROTOCOL_VERSION}")]
    ProtocolMismatch {
        /// What the agent speaks.
        theirs: u32,
    },
    /// What answers behaves as no gateway does.
    #[error("what answers is no gateway: {what}")]
    NoGateway {
        /// What it does otherwise.
        what: &'static str,
    },
    /// The answer is no document of the kind that it has to be.
    #[error("understanding the answer")]
    Answer(#[source] serde_json::Error),
    /// A framed answer holds something that is no frame.
    #[error("understanding the answer")]
    Frame(#[from] FrameFault),
    /// The answer is longer than such an answer can be.
    #[error("the answer is over the limit of {limit_bytes} bytes")]
    TooLong {
        /// The limit in bytes.
        limit_bytes: u64,
    },
    /// A document in the answer holds more values, or more levels of them, than it may.
    #[error("the answer holds a document of too many values or levels")]
    TooManyValues,
    /// A framed answer holds a frame that does not belong there, or goes on after its end.
    #[error("the answer holds a frame that does not belong there")]
    OutOfPlace,
    /// A framed answer stopped before its last frame: the agent, or its sandbox, has ended.
    #[error("the answer stopped midway")]
    Cut,
    /// The bytes that came are not those that the agent says it sent.
    #[error("`{name}` did not arrive as it was sent")]
    Corrupt {
        /// Which file.
        name: FileName,
    },
    /// The bytes of a log that came are not those that the agent says it sent.
    #[error("the log of the execution {execution} did not arrive as it was sent")]
    CorruptLog {
        /// Which execution's.
        execution: ExecutionId,
    },
    /// A local file or stream that was to be sent could not be read.
    #[error("reading what is to be sent")]
    Read(#[source] std::io::Error),
    /// What came could not be written.
    #[error("writing what was received")]
    Write(#[source] std::io::Error),
    /// A request could not be signed.
    #[error("signing a request")]
    Sign(#[from] NoRandomness),
    /// A request could not be put into words.
    #[error("putting a request together")]
    Request(#[source] hyper::http::Error),
}

impl ClientError {
    /// The agent's code, where it said no.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(body) => Some(body.code),
            _ => None,
        }
    }

    /// Whether the agent can no longer be talked to: its sandbox has ended or is ending.
    #[must_use]
    pub const fn is_gone(&self) -> bool {
        matches!(self, Self::Connect(_) | Self::Transport(_) | Self::Cut)
    }
}
