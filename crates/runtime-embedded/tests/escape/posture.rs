//! K25: a fresh sandbox is exactly what the document says, and a kernel that is a copy of a
//! template is what a fresh one is.

use anyhow::{Context as _, Result};
use glovebox_runtime::Start;
use glovebox_testkit::escape::posture::{self, Process};
use glovebox_testkit::escape::report;

use crate::lab::Embedded;

/// The document. When the profile changes on purpose, the test prints what it saw.
pub(crate) const DOCUMENT: &str = include_str!("posture.json");

/// In what a kernel that is a copy differs from a fresh one: it was started as the template, whose
/// library stays mapped. `docs/security/making-a-box.md` argues for each, and for what no process
/// can tell of itself.
const OF_COPIES: [&str; 2] = ["/program/arguments", "/program/mapped"];

async fn is_what_the_document_says(
    start: Start,
    process: Process,
    headings: &[&str],
) -> Result<()> {
    let embedded = Embedded::start().await?;
    let mut all = headings.to_vec();
    all.extend(embedded.headings());
    let seen = posture::take(&embedded.lab.starting(start), process).await?;
    embedded.finish().await?;
    let document = serde_json::from_str(DOCUMENT).context("reading the document")?;
    let reds = posture::compare(&document, &all, &seen)?;
    if !reds.is_empty() {
        println!("{}", serde_json::to_string_pretty(&seen)?);
    }
    report::none(&reds)
}

#[tokio::test]
async fn a_fresh_sandbox_is_what_the_document_says() -> Result<()> {
    is_what_the_document_says(Start::Fresh, Process::Program, &[]).await
}

#[tokio::test]
async fn a_program_beside_a_copied_kernel_is_what_the_document_says() -> Result<()> {
    is_what_the_document_says(Start::Template, Process::Program, &[]).await
}

#[tokio::test]
async fn a_fresh_kernel_is_what_the_document_says() -> Result<()> {
    is_what_the_document_says(Start::Fresh, Process::Kernel, &["kernel"]).await
}

#[tokio::test]
async fn a_copied_kernel_is_what_the_document_says() -> Result<()> {
    is_what_the_document_says(
        Start::Template,
        Process::Kernel,
        &["kernel", "copied kernel"],
    )
    .await
}

/// With everything that is the machine's own, which is the same for both.
#[tokio::test]
async fn a_copied_kernel_is_what_a_fresh_one_is() -> Result<()> {
    let embedded = Embedded::start().await?;
    let fresh = posture::take_raw(&embedded.lab, Process::Kernel).await?;
    let copied = embedded.lab.starting(Start::Template);
    let copied = posture::take_raw(&copied, Process::Kernel).await?;
    embedded.finish().await?;
    report::none(&posture::differences(&fresh, &copied, &OF_COPIES))
}
