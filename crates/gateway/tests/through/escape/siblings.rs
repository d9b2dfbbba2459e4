//! Two sandboxes, or two executions of one, that must not notice each other; and what the host sees.

use anyhow::{Context as _, Result};
use glovebox_testkit::escape::attacks::{host, limits};
use glovebox_testkit::escape::{Lab, Red, outside, report, siblings};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::Kind;

/// The first version of Landlock that keeps signals and abstract sockets of executions apart.
const SCOPES: u32 = 6;

on_both! {
    names_of_messages_and_memory_are_a_sandboxs_own:
        async |lab| siblings::ipc_names(lab).await;
    sockets_of_another_sandbox_cannot_be_reached:
        async |lab| siblings::abstract_sockets(lab).await;
    processes_of_another_sandbox_are_not_seen:
        async |lab| siblings::processes(lab).await;
    nothing_of_one_sandbox_is_in_the_next:
        async |lab| siblings::leftovers(lab).await;
    nobody_connects_to_a_planted_socket:
        async |lab| outside::planted_listener(lab).await;
    nothing_outside_hears_from_a_sandbox:
        async |lab| outside::listeners_outside(lab).await;
    a_lock_on_a_shared_file_is_not_seen_by_another_sandbox:
        async |lab| siblings::locks(lab).await;
    uses_of_a_shared_file_are_not_seen_by_another_sandbox:
        async |lab| siblings::file_events(lab).await;
}

on_embedded! {
    one_sandbox_does_not_use_up_what_the_kernel_counts_for_a_user:
        async |lab| siblings::user_limits(lab).await;
    executions_of_one_sandbox_are_kept_apart:
        async |lab| siblings::executions(lab, lab.landlock_abi() >= SCOPES).await;
    descriptors_sent_to_the_agent_are_not_kept:
        async |lab| outside::descriptors_to_the_agent(lab).await;
    every_process_of_a_sandbox_is_sealed:
        async |lab| host::every_process_is_sealed(lab).await;
    the_host_has_the_limits_written_down:
        async |lab| limits::control_groups(lab).await;
    two_sandboxes_have_no_id_in_common:
        async |lab| limits::ids_differ(lab).await;
    a_killed_agent_is_noticed_and_never_reached_again: async |lab| {
        let kill = |pid| {
            let pid = Pid::from_raw(pid).context("no process")?;
            Ok(kill_process(pid, Signal::KILL)?)
        };
        host::agent_is_killed(lab, kill).await
    };
}

/// Runs a check on Docker and gives what it found beyond one thing that `docs/security/containers.md`
/// names.
async fn on_docker_but_for(
    known: &str,
    check: impl AsyncFnOnce(&Lab) -> Result<Vec<Red>>,
) -> Result<()> {
    let (stage, lab) = super::lab(Kind::Docker).await?;
    let mut reds = check(&lab).await?;
    drop(lab);
    stage.finish().await;
    reds.retain(|red| !red.why.ends_with(known));
    report::none(&reds)
}

#[tokio::test]
async fn executions_of_one_container_see_which_descriptors_others_have_and_nothing_else()
-> Result<()> {
    on_docker_but_for(
        "the descriptors of another execution can be opened",
        async |lab| siblings::executions(lab, lab.landlock_abi() >= SCOPES).await,
    )
    .await
}

#[tokio::test]
async fn containers_can_use_up_each_others_watchers_of_files_and_nothing_else() -> Result<()> {
    on_docker_but_for("an instance in another gave EMFILE", async |lab| {
        siblings::user_limits(lab).await
    })
    .await
}
