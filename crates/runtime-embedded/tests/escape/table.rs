//! The table of checks tells the truth.

use anyhow::Result;
use glovebox_testkit::escape::{checks, report};
use glovebox_testkit::repository;

#[test]
fn the_table_of_checks_and_the_suite_agree() -> Result<()> {
    report::none(&checks::judge(&repository())?)
}

/// A18: files leave one by one, and no program of ours has a library that unpacks many.
#[test]
fn nobody_outside_unpacks_what_a_sandbox_made() -> Result<()> {
    let lock = fs_err::read_to_string(repository().join("Cargo.lock"))?;
    let has = |name: &str| lock.contains(&format!("name = \"{name}\""));
    anyhow::ensure!(
        has("tokio"),
        "the control failed: the lock does not name `tokio`"
    );
    for name in ["tar", "async-tar", "tokio-tar", "astral-tokio-tar", "cpio"] {
        anyhow::ensure!(!has(name), "`{name}` unpacks archives");
    }
    Ok(())
}
