//! Server, worker and gateway as processes, and what becomes of sandboxes when one is killed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod chat;
mod killed;
mod model_key;
mod process;
mod shared;
#[path = "../http/talk.rs"]
mod talk;
#[path = "../http/visitor.rs"]
mod visitor;
mod watched;
#[path = "../http/wire.rs"]
mod wire;
