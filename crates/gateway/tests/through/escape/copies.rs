//! Kernels that are copies of a template, which only the embedded runtime has.

use anyhow::{Context as _, Result};
use glovebox_runtime::Start;
use glovebox_testkit::escape::attacks::host;
use glovebox_testkit::escape::batch::{self, Position};
use glovebox_testkit::escape::template::{harm, identity, inherited};
use glovebox_testkit::escape::{Lab, outside, report};

use crate::stage::Kind;

on_embedded! {
    the_probes_hold_beside_a_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::First).await;
    the_probes_hold_in_a_used_sandbox_with_a_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::Used).await;
    the_probes_hold_in_a_grandchild_beside_a_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::Detached).await;
    the_probes_hold_in_a_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::Kernel).await;
    the_probes_hold_in_a_used_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::UsedKernel).await;
    the_probes_hold_in_a_grandchild_of_a_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::DetachedKernel).await;
    the_probes_hold_in_a_program_of_a_copied_kernel:
        async |lab| batch::run(&lab.starting(Start::Template), Position::ProgramOfKernel).await;
    trust_domains_share_no_template:
        async |lab| identity::domains_share_nothing(&lab.starting(Start::Template)).await;
    fresh_starts_have_nothing_in_common:
        async |lab| identity::fresh_starts_share_nothing(lab).await;
    generators_of_copies_differ:
        async |lab| identity::generators_differ(&lab.starting(Start::Template)).await;
    what_a_copy_leaves_is_in_no_other:
        async |lab| inherited::canaries_stay(&lab.starting(Start::Template)).await;
    what_a_fresh_kernel_leaves_is_in_no_other:
        async |lab| inherited::canaries_stay(lab).await;
    copies_share_no_memory_and_no_file:
        async |lab| inherited::nothing_is_shared(&lab.starting(Start::Template)).await;
    inherited_memory_counts_once_it_is_written_to:
        async |lab| inherited::dirtied_memory_is_counted(&lab.starting(Start::Template)).await;
    descriptors_that_a_copy_sends_to_the_agent_are_not_kept:
        async |lab| outside::descriptors_to_the_agent(&lab.starting(Start::Template)).await;
    every_process_beside_a_copy_is_sealed:
        async |lab| host::every_process_is_sealed(&lab.starting(Start::Template)).await;
}

async fn harm(start: Start) -> Result<()> {
    let (stage, lab) = super::lab(Kind::Embedded).await?;
    let runtime = stage.embedded.clone().context("no embedded runtime")?;
    let lab = lab.starting(start);
    let domain = lab.spec(Lab::small_limits()).trust_domain;
    let template = async || {
        let measured = runtime.measure().await?;
        Ok(measured.template(&domain).map(|template| template.pid))
    };
    let found = harm::stays_in_its_sandbox(&lab, template).await;
    drop((lab, runtime));
    stage.finish().await;
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
