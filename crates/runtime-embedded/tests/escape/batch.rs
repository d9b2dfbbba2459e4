//! The batch of harmless probes, from every place where code runs.

use anyhow::Result;
use glovebox_runtime::Start;
use glovebox_testkit::escape::batch::{self, Position};

use crate::lab::holds;

/// Runs the batch in a sandbox whose kernels start in this way.
async fn hold(start: Start, position: Position) -> Result<()> {
    holds(async |lab| batch::run(&lab.starting(start), position).await).await
}

#[tokio::test]
async fn the_probes_hold_in_the_first_program_of_a_sandbox() -> Result<()> {
    hold(Start::Fresh, Position::First).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_sandbox() -> Result<()> {
    hold(Start::Fresh, Position::Used).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_that_left_its_session() -> Result<()> {
    hold(Start::Fresh, Position::Detached).await
}

#[tokio::test]
async fn the_probes_hold_in_the_kernel() -> Result<()> {
    hold(Start::Fresh, Position::Kernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_kernel() -> Result<()> {
    hold(Start::Fresh, Position::UsedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_of_the_kernel() -> Result<()> {
    hold(Start::Fresh, Position::DetachedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_program_of_the_kernel() -> Result<()> {
    hold(Start::Fresh, Position::ProgramOfKernel).await
}

#[tokio::test]
async fn the_probes_hold_beside_a_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::First).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_sandbox_with_a_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::Used).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_beside_a_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::Detached).await
}

#[tokio::test]
async fn the_probes_hold_in_a_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::Kernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::UsedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_of_a_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::DetachedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_program_of_a_copied_kernel() -> Result<()> {
    hold(Start::Template, Position::ProgramOfKernel).await
}

#[tokio::test]
async fn the_tree_holds_no_privilege_and_no_secret() -> Result<()> {
    holds(async |lab| batch::run_walks(lab).await).await
}
