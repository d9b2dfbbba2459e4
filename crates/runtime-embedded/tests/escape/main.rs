//! The escape suite on the embedded runtime: what `docs/security/checks.md` says to hold.

#![expect(
    clippy::print_stdout,
    reason = "tests say what they had to accept, and what a mutation turned red"
)]

mod attacks;
mod batch;
mod canary;
mod features;
mod host;
mod impostor;
mod lab;
mod layers;
mod mutation;
mod pool;
mod posture;
mod secrets;
mod siblings;
mod table;
mod template;
