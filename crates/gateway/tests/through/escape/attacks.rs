//! Attacks on limits, each on a sandbox of its own.

use glovebox_testkit::escape::attacks::{files, memory, output, processes, time};

on_both! {
    a_fork_bomb_stops_at_the_limit:
        async |lab| processes::bomb(lab, "fork").await;
    a_bomb_of_programs_stops_at_the_limit:
        async |lab| processes::bomb(lab, "vfork").await;
    a_bomb_of_silent_children_stops_at_the_limit:
        async |lab| processes::bomb(lab, "clone").await;
    a_bomb_of_threads_stops_at_the_limit:
        async |lab| processes::bomb(lab, "thread").await;
    a_daemon_is_ended_with_its_program:
        async |lab| processes::daemon(lab).await;
    orphans_are_collected:
        async |lab| processes::zombies(lab).await;
    signals_do_not_end_the_agent:
        async |lab| processes::signals(lab).await;
    descriptors_run_out_for_the_program_alone:
        async |lab| processes::descriptors(lab).await;
    the_ways_of_ending_are_told_apart:
        async |lab| processes::endings(lab).await;
    heap_memory_is_limited:
        async |lab| memory::take(lab, "heap").await;
    mapped_memory_is_limited: async |lab| {
        let mut reds = memory::take(lab, "private").await?;
        reds.extend(memory::take(lab, "shared").await?);
        reds.extend(memory::is_named(lab).await?);
        Ok(reds)
    };
    stack_memory_is_limited:
        async |lab| memory::take(lab, "stack").await;
    memory_behind_descriptors_is_limited: async |lab| {
        let mut reds = Vec::new();
        for kind in ["memfd", "memfds", "pipes", "sockets"] {
            reds.extend(memory::take(lab, kind).await?);
        }
        Ok(reds)
    };
    deleted_files_that_are_open_are_limited:
        async |lab| memory::take(lab, "deleted").await;
    memory_of_the_kernel_is_limited:
        async |lab| memory::of_the_kernel(lab).await;
    a_full_workspace_is_the_programs_own_trouble: async |lab| {
        let mut reds = files::full_disk(lab).await?;
        reds.extend(files::full_disk_is_named(lab).await?);
        Ok(reds)
    };
    files_run_out_at_the_number_set:
        async |lab| files::full_of_files(lab).await;
    no_file_grows_over_its_limit:
        async |lab| files::large_file(lab).await;
    very_many_files_are_listed_in_part:
        async |lab| files::many_files(lab).await;
    a_deep_tree_is_removed_like_any_other:
        async |lab| files::deep_tree(lab).await;
    planted_links_are_not_followed:
        async |lab| files::planted_links(lab).await;
    output_over_the_budget_is_dropped_and_counted:
        async |lab| output::floods(lab).await;
    a_time_limit_ends_a_flood:
        async |lab| output::endless_flood(lab).await;
    a_slow_reader_holds_up_nothing_else:
        async |lab| output::slow_reader(lab).await;
    a_time_limit_ends_whatever_waits:
        async |lab| time::limits(lab).await;
    processor_time_is_held_to_its_share:
        async |lab| time::spin(lab).await;
}
