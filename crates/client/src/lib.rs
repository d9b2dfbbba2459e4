//! Typed clients: of an agent, through any byte stream or through a gateway, and of a gateway.
//!
//! Everything that an agent or a gateway answers may have come out of a sandbox and is hostile:
//! lengths are bounded before anything is kept, and no answer can make this crate panic. It
//! neither makes sandboxes nor decides what runs in them.

mod agent;
mod body;
pub mod canary;
mod channel;
mod connect;
mod error;
mod exchange;
mod execution;
mod files;
mod gateway;
mod health;
mod idle;
mod log;
mod pool;
mod tls;

pub use agent::{AgentClient, Identity};
pub use channel::Channel;
pub use connect::{ByteStream, Connecting, Connector, UnixConnector};
pub use error::ClientError;
pub use execution::Execution;
pub use gateway::{GatewayAddress, GatewayClient, GatewayIdentity, InvalidAddress};
pub use health::first_health;
pub use idle::{Idle, Unanswered};
pub use tls::{Fingerprint, InvalidBundle, InvalidFingerprint, Trust, present_certificate};
