//! The gateway from outside: real TLS, real sockets, a runtime that only plays one.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod basics;
mod canary;
mod relay;
mod rig;
mod sealed;
