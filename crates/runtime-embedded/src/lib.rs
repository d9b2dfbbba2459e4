//! The embedded runtime: sandboxes on this machine, without daemon or container engine.
//!
//! Builds the root tree that boxes stand on and drives the launcher that makes them. The boxes
//! themselves are the work of `glovebox-box`.

mod driver;
mod link;
pub mod tree;

pub use driver::{
    Afterwards, CHECKS, EmbeddedRuntime, Made, Measured, Options, Pool, ReadyKind, Template,
};
