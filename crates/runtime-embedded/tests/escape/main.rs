//! The escape suite on the embedded runtime: what `docs/security/checks.md` says to hold.

mod attacks;
mod batch;
mod features;
mod host;
mod impostor;
mod lab;
mod layers;
mod mutation;
mod posture;
mod secrets;
mod siblings;
mod table;
