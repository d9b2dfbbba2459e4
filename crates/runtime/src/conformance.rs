//! What every runtime has to do alike, as tests that each driver runs.
//!
//! A driver's test file says how to make its runtime and calls [`conformance_tests!`](crate::conformance_tests),
//! which makes one test of each check; once for each way of starting a kernel that the runtime
//! has. A check that needs a capability the runtime does not claim says so on standard error
//! instead; which capabilities a runtime claims is checked by its own tests.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    missing_docs,
    clippy::missing_panics_doc,
    reason = "these are tests: they fail by panicking, and their names say what they check"
)]

pub mod artifacts;
pub mod cells;
pub mod files;
pub mod isolation;
pub mod kernel;
pub mod lifecycle;
pub mod limits;
pub mod processes;
pub mod starts;
mod subject;

pub use subject::{Guest, Ran, Subject};

/// Makes one test of every check. `$subject` is a call of an async function that returns a
/// [`Subject`](crate::conformance::Subject), with its whole path: `crate::subject()`. In a module
/// of its own, it can stand more than once in a file.
#[macro_export]
macro_rules! conformance_tests {
    ($subject:expr) => {
        $crate::conformance_tests! { @each $subject;
            artifacts: [
                only_allowed_types_leave,
                a_file_whose_content_belies_its_name_stays,
                links_and_special_files_stay,
                an_unchanged_input_stays_and_a_changed_one_leaves,
                a_collection_is_bounded_in_files_and_bytes,
            ],
            cells: [
                a_figure_is_shown_as_a_picture,
                a_table_is_shown_as_one,
                await_works_at_the_top_of_a_cell,
                threads_run,
                programs_are_started,
                processes_share_work,
                memory_is_shared_between_processes,
                databases_are_kept_in_files_and_in_memory,
                every_wait_can_be_interrupted,
                code_may_fork,
                documents_of_every_kind_are_made,
            ],
            files: [
                a_file_comes_out_as_it_went_in,
                any_name_that_linux_takes_is_taken,
                a_folder_is_made_on_the_way,
                input_over_the_limit_is_refused_and_leaves_nothing,
                a_link_is_never_followed,
                a_deleted_file_is_gone,
            ],
            isolation: [
                sandboxes_do_not_share_files,
                a_request_for_one_sandbox_is_refused_by_another,
                a_request_with_an_unknown_key_is_refused,
                a_sandbox_has_no_network,
            ],
            kernel: [
                variables_live_from_call_to_call,
                output_comes_in_program_order,
                an_exception_is_told_and_the_kernel_goes_on,
                the_last_expression_is_shown,
                an_interrupt_keeps_variables,
                a_dead_kernel_is_named_and_replaced,
                late_output_is_not_mixed_into_the_next_call,
                input_fails_clearly,
                one_call_at_a_time,
                output_over_the_budget_is_dropped_and_counted,
            ],
            lifecycle: [
                a_created_sandbox_answers,
                an_id_is_used_once,
                an_unknown_sandbox_is_not_found,
                stopping_keeps_the_record_and_may_be_repeated,
                removing_forgets_and_may_be_repeated,
                all_sandboxes_are_listed,
                many_are_made_at_once,
                the_hard_deadline_ends_a_sandbox,
                a_create_that_nobody_waits_for_leaves_nothing,
            ],
            limits: [
                the_workspace_is_limited_in_bytes,
                the_workspace_is_limited_in_files,
                memory_is_limited_and_running_out_is_named,
                processes_are_limited,
                processor_time_is_limited,
                agent_and_workload_have_ids_of_their_own,
                ending_one_execution_leaves_the_others,
            ],
            processes: [
                the_exit_status_is_the_programs,
                both_streams_come_byte_for_byte,
                arguments_and_variables_arrive,
                standard_input_arrives,
                a_time_limit_ends_the_program,
                a_signal_is_named,
                the_answer_comes_when_the_main_process_ends,
                an_execution_nobody_reads_is_ended,
                loader_variables_are_refused,
            ],
            starts: [
                a_kernel_says_how_it_was_started,
                a_restart_gives_a_kernel_without_a_past,
                kernels_of_one_trust_domain_have_nothing_in_common,
                random_values_differ_from_sandbox_to_sandbox,
                an_idle_sandbox_keeps_its_files_and_says_that_variables_are_gone,
                a_sandbox_in_use_is_not_idle,
            ],
        }
    };
    (@each $subject:expr; $($module:ident: [$($check:ident,)*],)*) => {
        $(mod $module {
            $(
                #[tokio::test]
                async fn $check() {
                    let subject = $subject.await;
                    $crate::conformance::$module::$check(&subject).await;
                    subject.finish().await;
                }
            )*
        })*
    };
}
