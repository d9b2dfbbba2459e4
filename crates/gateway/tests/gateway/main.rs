//! The gateway from outside: real TLS, real sockets, a runtime that only plays one.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod basics;
mod canary;
mod documents;
mod forged;
mod hostile;
mod lies;
mod limits;
mod program;
mod races;
mod relay;
mod rig;
mod sealed;
mod wire;
