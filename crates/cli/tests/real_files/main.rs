//! `glovebox run` with files as people have them: every format that they bring and take away,
//! names and sizes at their limits, and what happens when something goes wrong on the way.
//!
//! How the command itself behaves is tested beside this, in `command`. What comes out is opened
//! by LibreOffice and poppler, as people would open it.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod fonts;
mod formats;
mod losses;
mod names;
mod notebooks;
mod office;
mod opened;
mod signals;
mod sizes;
#[path = "../command/support.rs"]
mod support;

use std::path::{Path, PathBuf};

use glovebox_testkit::repository;

use support::with_sandbox;

/// A program that runs in the sandbox.
fn job(name: &str) -> PathBuf {
    here().join("jobs").join(name)
}

/// A file that another program has written.
fn data(name: &str) -> PathBuf {
    here().join("data").join(name)
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real_files")
}

/// A file of the examples.
fn example(name: &str) -> PathBuf {
    repository().join("examples").join(name)
}
