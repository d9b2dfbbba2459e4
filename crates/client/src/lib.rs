//! Typed clients. For now one: of an agent, through any byte stream.
//!
//! Everything that an agent answers came out of a sandbox and is hostile: lengths are bounded
//! before anything is kept, and no answer can make this crate panic. It neither makes sandboxes
//! nor decides what runs in them.

mod agent;
mod body;
pub mod canary;
mod channel;
mod connect;
mod error;
mod exchange;
mod execution;
mod files;
mod health;
mod log;

pub use agent::{AgentClient, Identity};
pub use connect::{ByteStream, Connecting, Connector, UnixConnector};
pub use error::ClientError;
pub use execution::Execution;
pub use health::first_health;
