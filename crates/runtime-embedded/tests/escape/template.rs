//! Group Z: kernels that are copies of a template.

use anyhow::{Context as _, Result, ensure};
use glovebox_runtime::{Capability, Start};
use glovebox_runtime_embedded::EmbeddedRuntime;
use glovebox_testkit::escape::attacks::host;
use glovebox_testkit::escape::template::{harm, identity, inherited};
use glovebox_testkit::escape::{Lab, Red, outside, report};

use crate::lab::{self, Embedded, holds, holds_with};

/// The process that kernels of the suite's trust domain are copied from.
pub(crate) async fn template_of(runtime: &EmbeddedRuntime, lab: &Lab) -> Result<Option<i32>> {
    let measured = runtime.measure().await?;
    let domain = lab.spec(Lab::small_limits()).trust_domain;
    Ok(measured.template(&domain).map(|template| template.pid))
}

async fn holds_in_copies(check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>) -> Result<()> {
    holds(async |lab| check(&lab.starting(Start::Template)).await).await
}

#[tokio::test]
async fn trust_domains_share_no_template() -> Result<()> {
    holds_in_copies(async |lab| identity::domains_share_nothing(lab).await).await
}

#[tokio::test]
async fn fresh_starts_have_nothing_in_common() -> Result<()> {
    holds(async |lab| identity::fresh_starts_share_nothing(lab).await).await
}

#[tokio::test]
async fn generators_of_copies_differ() -> Result<()> {
    holds_in_copies(async |lab| identity::generators_differ(lab).await).await
}

#[tokio::test]
async fn what_a_copy_leaves_is_in_no_other() -> Result<()> {
    holds_in_copies(async |lab| inherited::canaries_stay(lab).await).await
}

#[tokio::test]
async fn what_a_fresh_kernel_leaves_is_in_no_other() -> Result<()> {
    holds(async |lab| inherited::canaries_stay(lab).await).await
}

#[tokio::test]
async fn copies_share_no_memory_and_no_file() -> Result<()> {
    holds_in_copies(async |lab| inherited::nothing_is_shared(lab).await).await
}

#[tokio::test]
async fn inherited_memory_counts_once_it_is_written_to() -> Result<()> {
    holds_with(Capability::MemoryLimit, async |lab| {
        inherited::dirtied_memory_is_counted(&lab.starting(Start::Template)).await
    })
    .await
}

#[tokio::test]
async fn descriptors_that_a_copy_sends_to_the_agent_are_not_kept() -> Result<()> {
    holds_in_copies(async |lab| outside::descriptors_to_the_agent(lab).await).await
}

#[tokio::test]
async fn every_process_beside_a_copy_is_sealed() -> Result<()> {
    holds_in_copies(async |lab| host::every_process_is_sealed(lab).await).await
}

async fn harm(start: Start) -> Result<()> {
    let embedded = Embedded::start().await?;
    let lab = embedded.lab.starting(start);
    let template = async || template_of(embedded.runtime(), &lab).await;
    let found = harm::stays_in_its_sandbox(&lab, template).await;
    drop(lab);
    embedded.finish().await?;
    report::none(&found?)
}

#[tokio::test]
async fn a_copy_harms_its_own_sandbox_alone() -> Result<()> {
    harm(Start::Template).await
}

#[tokio::test]
async fn a_fresh_kernel_harms_its_own_sandbox_alone() -> Result<()> {
    harm(Start::Fresh).await
}

/// Z3 and Z5 for the template itself: one thread, and open what it needs, before and after it was
/// copied.
#[tokio::test]
async fn a_template_has_one_thread_and_open_what_it_needs_alone() -> Result<()> {
    let _forgotten = lab::forgotten_descriptor()?;
    let embedded = Embedded::start().await?;
    let lab = embedded.lab.starting(Start::Template);
    let mut reds = Vec::new();
    let mut known = None;
    for round in 0..3 {
        let subject = lab.bare_subject(Lab::small_limits()).await?;
        subject.kernel("1").await?;
        let pid = template_of(embedded.runtime(), &lab).await?;
        let pid = pid.context("no template lives")?;
        ensure!(*known.get_or_insert(pid) == pid, "the template is another");
        reds.extend(host::template_is_bare(pid)?);
        if round == 1 {
            subject.kernel("import os; os._exit(1)").await?;
        }
        subject.remove().await?;
    }
    drop(lab);
    embedded.finish().await?;
    report::none(&reds)
}
