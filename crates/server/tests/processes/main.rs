//! Server, worker and gateway as processes, and what becomes of sandboxes when one is killed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod killed;
mod model_key;
mod process;
mod shared;
#[path = "../http/visitor.rs"]
mod visitor;
#[path = "../http/wire.rs"]
mod wire;
