//! The batch of harmless probes, from every place where code runs.

use anyhow::Result;
use glovebox_testkit::escape::batch::{self, Position};

use crate::lab::holds;

#[tokio::test]
async fn the_probes_hold_in_the_first_program_of_a_sandbox() -> Result<()> {
    holds(async |lab| batch::run(lab, Position::First).await).await
}

#[tokio::test]
async fn the_probes_hold_in_a_used_sandbox() -> Result<()> {
    holds(async |lab| batch::run(lab, Position::Used).await).await
}

#[tokio::test]
async fn the_probes_hold_in_a_grandchild_that_left_its_session() -> Result<()> {
    holds(async |lab| batch::run(lab, Position::Detached).await).await
}

#[tokio::test]
async fn the_probes_hold_in_the_kernel() -> Result<()> {
    holds(async |lab| batch::run(lab, Position::Kernel).await).await
}

#[tokio::test]
async fn the_tree_holds_no_privilege_and_no_secret() -> Result<()> {
    holds(async |lab| batch::run_walks(lab).await).await
}
