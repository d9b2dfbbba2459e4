//! Server, worker and gateway as processes, and what becomes of sandboxes when one is killed.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod chat;
mod killed;
mod process;
mod shared;
#[path = "../http/talk.rs"]
mod talk;
#[path = "../http/visitor.rs"]
mod visitor;
#[path = "../http/wire.rs"]
mod wire;
