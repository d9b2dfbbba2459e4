//! The controls of the escape suite: what a sandbox refuses is possible without one.

use anyhow::Result;
use glovebox_testkit::escape::{control, report};

#[tokio::test]
async fn what_a_sandbox_refuses_is_possible_without_one() -> Result<()> {
    report::none(&control::run().await?)
}
