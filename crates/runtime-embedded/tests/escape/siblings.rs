//! Two sandboxes, or two executions of one, that must not notice each other.

use anyhow::Result;
use glovebox_testkit::escape::{outside, report, siblings};

use crate::lab::{Embedded, holds};

#[tokio::test]
async fn a_lock_on_a_shared_file_is_not_seen_by_another_sandbox() -> Result<()> {
    holds(async |lab| siblings::locks(lab).await).await
}

#[tokio::test]
async fn uses_of_a_shared_file_are_not_seen_by_another_sandbox() -> Result<()> {
    holds(async |lab| siblings::file_events(lab).await).await
}

#[tokio::test]
async fn names_of_messages_and_memory_are_a_sandboxs_own() -> Result<()> {
    holds(async |lab| siblings::ipc_names(lab).await).await
}

#[tokio::test]
async fn sockets_of_another_sandbox_cannot_be_reached() -> Result<()> {
    holds(async |lab| siblings::abstract_sockets(lab).await).await
}

#[tokio::test]
async fn processes_of_another_sandbox_are_not_seen() -> Result<()> {
    holds(async |lab| siblings::processes(lab).await).await
}

#[tokio::test]
async fn executions_of_one_sandbox_are_kept_apart() -> Result<()> {
    let embedded = Embedded::start().await?;
    let scoped = embedded.scoped();
    println!("the kernel keeps signals and abstract sockets apart: {scoped}");
    let reds = siblings::executions(&embedded.lab, scoped).await?;
    embedded.finish().await?;
    report::none(&reds)
}

#[tokio::test]
async fn one_sandbox_does_not_use_up_what_the_kernel_counts_for_a_user() -> Result<()> {
    holds(async |lab| siblings::user_limits(lab).await).await
}

#[tokio::test]
async fn nothing_of_one_sandbox_is_in_the_next() -> Result<()> {
    holds(async |lab| siblings::leftovers(lab).await).await
}

#[tokio::test]
async fn nobody_connects_to_a_planted_socket() -> Result<()> {
    holds(async |lab| outside::planted_listener(lab).await).await
}

#[tokio::test]
async fn nothing_outside_hears_from_a_sandbox() -> Result<()> {
    holds(async |lab| outside::listeners_outside(lab).await).await
}

#[tokio::test]
async fn descriptors_sent_to_the_agent_are_not_kept() -> Result<()> {
    holds(async |lab| outside::descriptors_to_the_agent(lab).await).await
}

#[tokio::test]
async fn a_request_for_one_sandbox_is_refused_by_another() -> Result<()> {
    holds(async |lab| outside::replayed_request(lab).await).await
}
