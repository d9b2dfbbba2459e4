//! `glovebox` as a person or a program uses it: one file for each side of it.

#![allow(
    missing_docs,
    unreachable_pub,
    reason = "a test program has no callers"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "tests look at files and start programs as anybody would"
)]

mod ends;
mod events;
mod examples;
mod inputs;
mod notebook;
mod refusals;
mod results;
mod script;
mod setup;
mod signals;
mod support;
mod version;
