//! The words that server, gateway and agent share: ids, limits, wire types and request signing.
//!
//! Nothing in here reads a file, a socket or a clock: callers pass in bytes and times, so that
//! every rule can be tested without a sandbox. Everything that came out of a sandbox is hostile
//! until it has passed through the types of this crate.

pub mod agent_config;
pub mod artifact;
pub mod capability;
pub mod claim;
pub mod class;
pub mod content;
pub mod environment;
pub mod error;
pub mod event;
pub mod file;
pub mod frame;
pub mod gateway;
pub mod health;
pub mod ids;
pub mod kernel;
pub mod launcher_line;
pub mod limits;
pub mod log;
pub mod process;
pub mod record;
pub mod sign;
pub mod strict;
pub mod thread;

/// The number of the protocol that this build speaks.
///
/// It is one number for all messages between server, gateway and agent. It goes up whenever an
/// old peer would misunderstand a new one; a peer with another number is refused by name, never
/// guessed at.
pub const PROTOCOL_VERSION: u32 = 1;
