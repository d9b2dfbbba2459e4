//! The API, asked over HTTP as its clients ask it: a real server, database and gateway. What runs
//! behind the gateway is a runtime that plays one, but for the tests in `embedded`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod accounts;
mod assistant;
mod assistant_limits;
mod audit;
mod changes;
mod chat;
mod chat_edges;
mod chat_rights;
mod database;
mod embedded;
mod first_run;
mod foreign;
mod forms;
mod gate;
mod lifecycle;
mod master_key;
mod metrics;
mod models;
mod office_files;
mod previewed;
mod previews;
mod previews_and_sandboxes;
mod previews_of_hostile_files;
mod reference;
mod reset;
mod revoked;
mod roles;
mod secrets;
mod stage;
mod stored_files;
mod streams;
mod talk;
mod this_machine;
mod tls;
mod visitor;
mod wire;
