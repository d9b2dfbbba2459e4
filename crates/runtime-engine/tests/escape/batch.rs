//! The batch of harmless probes, from every place where code runs.

use anyhow::Result;
use glovebox_testkit::escape::batch::{self, Position};

use crate::lab::holds;

async fn hold(position: Position) -> Result<()> {
    holds(async |lab| batch::run(lab, position).await).await
}

#[tokio::test]
async fn the_probes_hold_in_the_first_program_of_a_sandbox() -> Result<()> {
    hold(Position::First).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_sandbox() -> Result<()> {
    hold(Position::Used).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_that_left_its_session() -> Result<()> {
    hold(Position::Detached).await
}

#[tokio::test]
async fn the_probes_hold_in_the_kernel() -> Result<()> {
    hold(Position::Kernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_kernel() -> Result<()> {
    hold(Position::UsedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_of_the_kernel() -> Result<()> {
    hold(Position::DetachedKernel).await
}

#[tokio::test]
async fn the_probes_hold_in_a_program_of_the_kernel() -> Result<()> {
    hold(Position::ProgramOfKernel).await
}

#[tokio::test]
async fn the_image_holds_no_privilege_and_no_secret() -> Result<()> {
    holds(async |lab| batch::run_walks(lab).await).await
}
