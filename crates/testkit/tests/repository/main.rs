//! Checks of the repository itself: who may depend on whom, where `unsafe` may stand, how long a
//! file may be, whether documents name what is there, and words that do not belong.
//!
//! They look at the files that git tracks and run in milliseconds. Nothing here is about what
//! the code does.

mod arrows;
mod documents;
mod homes;
mod sizes;
mod tracked;
mod words;

/// Fails with every finding at once, so that one run shows all there is to mend.
fn none(what: &str, findings: &[String]) -> anyhow::Result<()> {
    anyhow::ensure!(
        findings.is_empty(),
        "{} {what}:\n  {}",
        findings.len(),
        findings.join("\n  ")
    );
    Ok(())
}
