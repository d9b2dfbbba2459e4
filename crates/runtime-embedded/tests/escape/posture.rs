//! K25: a fresh sandbox is exactly what the document says.

use anyhow::{Context as _, Result};
use glovebox_testkit::escape::{posture, report};
use glovebox_testkit::repository;

use crate::lab::Embedded;

/// The document. When the profile changes on purpose, `target/posture.json` has the new one.
pub(crate) const DOCUMENT: &str = include_str!("posture.json");

#[tokio::test]
async fn a_fresh_sandbox_is_what_the_document_says() -> Result<()> {
    let embedded = Embedded::start().await?;
    let headings = embedded.headings();
    let seen = posture::take(&embedded.lab).await?;
    embedded.finish().await?;
    let document = serde_json::from_str(DOCUMENT).context("reading the document")?;
    let reds = posture::compare(&document, &headings, &seen)?;
    if !reds.is_empty() {
        let text = serde_json::to_string_pretty(&seen)?;
        fs_err::write(repository().join("target/posture.json"), text)?;
    }
    report::none(&reds)
}
