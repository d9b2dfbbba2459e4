//! One file for each thing that `glovebox` can do.

pub(crate) mod admin;
pub(crate) mod backup;
pub(crate) mod doctor;
pub(crate) mod gateway;
pub(crate) mod keys;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod setup;
pub(crate) mod version;

use std::io::Write as _;

use crate::failure::Failure;

/// Prints what a command answers.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|_| Failure::OutputGone)
}
