//! In what sandboxes of container engines are known to differ: what `docs/security/containers.md`
//! says.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};

use super::Red;

/// The probe that a finding is of.
#[must_use]
pub fn probe_of(red: &Red) -> Option<&str> {
    red.why.split('`').nth(1)
}

/// The probes that stand in the document's table.
///
/// # Errors
/// When the document has no such table.
pub fn differences() -> Result<BTreeSet<String>> {
    let document = crate::repository().join("docs/security/containers.md");
    let text = fs_err::read_to_string(document)?;
    let (_, table) = text
        .split_once("## What is different")
        .context("the document has no such table")?;
    let probe = |line: &str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    Ok(table.lines().filter_map(probe).collect())
}
