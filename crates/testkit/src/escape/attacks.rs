//! Attacks that could harm their sandbox, each in one of its own.
//!
//! After each the agent has to answer and the sandbox to be usable, or to be ended and named.

pub mod files;
pub mod host;
pub mod limits;
pub mod memory;
pub mod output;
pub mod processes;
pub mod time;

use anyhow::Result;

use super::lab::Subject;
use super::report::Red;

/// Notes it when a sandbox does not work any more.
async fn usable(reds: &mut Vec<Red>, check: &str, subject: &Subject) {
    if let Err(error) = subject.still_works().await {
        reds.push(Red::new(
            check,
            format!("the sandbox is not usable afterwards: {error:#}"),
        ));
    }
}

/// Ends the sandbox of an attack and gives what was found.
async fn finish(subject: Subject, reds: Vec<Red>) -> Result<Vec<Red>> {
    subject.remove().await?;
    Ok(reds)
}
