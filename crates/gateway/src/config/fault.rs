//! What is wrong with the environment, in one line for each variable.

use std::fmt;

/// One thing that is wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which variable. Its value is not shown: it may be a secret in the wrong place.
    pub variable: &'static str,
    /// What is wrong with it.
    pub what: String,
    /// What to do.
    pub fix: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}; {}", self.variable, self.what, self.fix)
    }
}

/// Everything that was found so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn add(
        &mut self,
        variable: &'static str,
        what: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.0.push(Fault {
            variable,
            what: what.into(),
            fix: fix.into(),
        });
    }

    pub(crate) fn into_list(self) -> Vec<Fault> {
        self.0
    }
}
