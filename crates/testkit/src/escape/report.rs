//! What probes say, and what is found wrong with it.

use serde::Deserialize;
use serde_json::Value;

/// One thing that a probe saw.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Report {
    /// `CHECK/what` for a probe of the batch, a word for an attack.
    pub id: String,
    /// What was seen.
    pub observed: Value,
    /// More about it, for people.
    #[serde(default)]
    pub detail: String,
}

impl Report {
    /// The reports among the lines of a program's output. Other lines are passed over: a crashed
    /// probe is noticed by what it did not report.
    #[must_use]
    pub fn all_in(output: &[u8]) -> Vec<Self> {
        output
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect()
    }
}

/// Something that is not as it has to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Red {
    /// Which check found it, such as `K7`.
    pub check: String,
    /// What was seen and what should have been.
    pub why: String,
}

impl Red {
    /// A finding of a check.
    #[must_use]
    pub fn new(check: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            check: check.into(),
            why: why.into(),
        }
    }
}

impl std::fmt::Display for Red {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.check, self.why)
    }
}

/// Adds a finding unless `holds`.
pub(crate) fn demand(reds: &mut Vec<Red>, check: &str, holds: bool, why: impl FnOnce() -> String) {
    if !holds {
        reds.push(Red::new(check, why()));
    }
}

/// Fails a test with everything that was found.
///
/// # Errors
/// When anything was found.
pub fn none(reds: &[Red]) -> anyhow::Result<()> {
    let lines: Vec<_> = reds.iter().map(|red| format!("  {red}")).collect();
    anyhow::ensure!(
        reds.is_empty(),
        "{} finding(s):\n{}",
        reds.len(),
        lines.join("\n")
    );
    Ok(())
}
