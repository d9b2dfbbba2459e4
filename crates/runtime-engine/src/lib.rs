//! The runtime of container engines: each sandbox is a container without any network, made of an
//! image that was built on the engine's host.
//!
//! Docker is spoken to over its API. The agent is process 1 of its container and is reached over
//! the container's standard streams, which the engine joins to us: see `link.rs` and
//! [`glovebox_protocol::record`]. The state of a sandbox is in its container's labels, so that the
//! next process finds it again. Nothing here knows how an agent works.

mod adopt;
mod body;
mod compare;
mod driver;
mod engine;
mod examine;
mod image;
mod keeper;
mod labels;
mod link;
mod making;
mod owner;
mod table;

pub use driver::{EngineRuntime, Options};
pub use examine::CHECKS;
