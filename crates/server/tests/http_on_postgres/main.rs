//! The tests of `http`, on PostgreSQL: its answers are the same.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

#[path = "../http/accounts.rs"]
mod accounts;
#[path = "../http/assistant.rs"]
mod assistant;
#[path = "../http/chat.rs"]
mod chat;
#[path = "../http/chat_edges.rs"]
mod chat_edges;
#[path = "../http/chat_rights.rs"]
mod chat_rights;
mod database;
#[path = "../http/embedded.rs"]
mod embedded;
#[path = "../http/first_run.rs"]
mod first_run;
#[path = "../http/foreign.rs"]
mod foreign;
#[path = "../http/gate.rs"]
mod gate;
#[path = "../http/metrics.rs"]
mod metrics;
#[path = "../http/models.rs"]
mod models;
#[path = "../http/reset.rs"]
mod reset;
#[path = "../http/roles.rs"]
mod roles;
#[path = "../http/secrets.rs"]
mod secrets;
#[path = "../http/stage.rs"]
mod stage;
#[path = "../http/talk.rs"]
mod talk;
#[path = "../http/visitor.rs"]
mod visitor;
#[path = "../http/wire.rs"]
mod wire;
