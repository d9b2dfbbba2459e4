//! The escape suite on real Docker: what `docs/security/containers.md` says to hold.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod attacks;
mod batch;
mod lab;
#[path = "../support/mod.rs"]
mod support;
