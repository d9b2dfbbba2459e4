//! The store on both databases: every test runs on SQLite and on PostgreSQL.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod backups;
mod damaged_backups;
mod endings;
mod furnished;
mod models;
mod order;
mod people;
mod previews;
mod rows;
mod runs;
mod support;
mod system;
mod thread_files;
mod thread_history;
mod threads;
