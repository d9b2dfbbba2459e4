//! Attacks on limits, each on a sandbox of its own.

use anyhow::Result;
use glovebox_testkit::escape::attacks::{files, memory, output, processes, time};

use crate::lab::holds;

#[tokio::test]
async fn a_fork_bomb_stops_at_the_limit() -> Result<()> {
    holds(async |lab| processes::bomb(lab, "fork").await).await
}

#[tokio::test]
async fn a_bomb_of_programs_stops_at_the_limit() -> Result<()> {
    holds(async |lab| processes::bomb(lab, "vfork").await).await
}

#[tokio::test]
async fn a_bomb_of_silent_children_stops_at_the_limit() -> Result<()> {
    holds(async |lab| processes::bomb(lab, "clone").await).await
}

#[tokio::test]
async fn a_bomb_of_threads_stops_at_the_limit() -> Result<()> {
    holds(async |lab| processes::bomb(lab, "thread").await).await
}

#[tokio::test]
async fn a_daemon_is_ended_with_its_program() -> Result<()> {
    holds(async |lab| processes::daemon(lab).await).await
}

#[tokio::test]
async fn orphans_are_collected() -> Result<()> {
    holds(async |lab| processes::zombies(lab).await).await
}

#[tokio::test]
async fn signals_do_not_end_the_agent() -> Result<()> {
    holds(async |lab| processes::signals(lab).await).await
}

#[tokio::test]
async fn descriptors_run_out_for_the_program_alone() -> Result<()> {
    holds(async |lab| processes::descriptors(lab).await).await
}

#[tokio::test]
async fn the_ways_of_ending_are_told_apart() -> Result<()> {
    holds(async |lab| processes::endings(lab).await).await
}

#[tokio::test]
async fn heap_memory_is_limited() -> Result<()> {
    holds(async |lab| memory::take(lab, "heap").await).await
}

#[tokio::test]
async fn mapped_memory_is_limited() -> Result<()> {
    holds(async |lab| {
        let mut reds = memory::take(lab, "private").await?;
        reds.extend(memory::take(lab, "shared").await?);
        reds.extend(memory::is_named(lab).await?);
        Ok(reds)
    })
    .await
}

#[tokio::test]
async fn stack_memory_is_limited() -> Result<()> {
    holds(async |lab| memory::take(lab, "stack").await).await
}

#[tokio::test]
async fn memory_behind_descriptors_is_limited() -> Result<()> {
    holds(async |lab| {
        let mut reds = Vec::new();
        for kind in ["memfd", "memfds", "pipes", "sockets"] {
            reds.extend(memory::take(lab, kind).await?);
        }
        Ok(reds)
    })
    .await
}

#[tokio::test]
async fn deleted_files_that_are_open_are_limited() -> Result<()> {
    holds(async |lab| memory::take(lab, "deleted").await).await
}

#[tokio::test]
async fn memory_of_the_kernel_is_limited() -> Result<()> {
    holds(async |lab| memory::of_the_kernel(lab).await).await
}

#[tokio::test]
async fn a_full_workspace_is_the_programs_own_trouble() -> Result<()> {
    holds(async |lab| {
        let mut reds = files::full_disk(lab).await?;
        reds.extend(files::full_disk_is_named(lab).await?);
        Ok(reds)
    })
    .await
}

#[tokio::test]
async fn files_run_out_at_the_number_set() -> Result<()> {
    holds(async |lab| files::full_of_files(lab).await).await
}

#[tokio::test]
async fn no_file_grows_over_its_limit() -> Result<()> {
    holds(async |lab| files::large_file(lab).await).await
}

#[tokio::test]
async fn very_many_files_are_listed_in_part() -> Result<()> {
    holds(async |lab| files::many_files(lab).await).await
}

#[tokio::test]
async fn a_deep_tree_is_removed_like_any_other() -> Result<()> {
    holds(async |lab| files::deep_tree(lab).await).await
}

#[tokio::test]
async fn planted_links_are_not_followed() -> Result<()> {
    holds(async |lab| files::planted_links(lab).await).await
}

#[tokio::test]
async fn output_over_the_budget_is_dropped_and_counted() -> Result<()> {
    holds(async |lab| output::floods(lab).await).await
}

#[tokio::test]
async fn a_time_limit_ends_a_flood() -> Result<()> {
    holds(async |lab| output::endless_flood(lab).await).await
}

#[tokio::test]
async fn a_slow_reader_holds_up_nothing_else() -> Result<()> {
    holds(async |lab| output::slow_reader(lab).await).await
}

#[tokio::test]
async fn a_time_limit_ends_whatever_waits() -> Result<()> {
    holds(async |lab| time::limits(lab).await).await
}

#[tokio::test]
async fn processor_time_is_held_to_its_share() -> Result<()> {
    holds(async |lab| time::spin(lab).await).await
}
