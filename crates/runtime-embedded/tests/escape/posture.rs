//! K25: a fresh sandbox is exactly what the document says.

use anyhow::{Context as _, Result};
use glovebox_testkit::escape::{posture, report};

use crate::lab::Embedded;

/// The document. When the profile changes on purpose, the test prints the new `common` part.
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
        println!("{}", serde_json::to_string_pretty(&seen)?);
    }
    report::none(&reds)
}
