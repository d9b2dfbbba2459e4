//! A fresh sandbox behind a gateway is exactly what the embedded runtime's document says.

use anyhow::Result;
use glovebox_runtime::Start;
use glovebox_testkit::escape::posture::{self, Process};
use glovebox_testkit::escape::report;

use crate::stage::Kind;

/// What the embedded runtime's own tests hold a fresh sandbox to.
const DOCUMENT: &str = include_str!("../../../../runtime-embedded/tests/escape/posture.json");

async fn is_what_the_document_says(
    start: Start,
    process: Process,
    headings: &[&str],
) -> Result<()> {
    let (stage, lab) = super::lab(Kind::Embedded).await?;
    let lab = lab.starting(start);
    let seen = posture::take(&lab, process).await?;
    let mut all = headings.to_vec();
    all.extend(&stage.headings);
    drop(lab);
    stage.finish().await;
    let document = serde_json::from_str(DOCUMENT)?;
    report::none(&posture::compare(&document, &all, &seen)?)
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
    let headings = ["kernel", "copied kernel"];
    is_what_the_document_says(Start::Template, Process::Kernel, &headings).await
}
