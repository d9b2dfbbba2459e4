//! The batch of harmless probes, from every place where code runs.

use glovebox_testkit::escape::batch::{self, Position};

on_both! {
    the_probes_hold_in_the_first_program_of_a_sandbox:
        async |lab| batch::run(lab, Position::First).await;
    the_probes_hold_in_a_used_sandbox:
        async |lab| batch::run(lab, Position::Used).await;
    the_probes_hold_in_a_grandchild_that_left_its_session:
        async |lab| batch::run(lab, Position::Detached).await;
    the_probes_hold_in_the_kernel:
        async |lab| batch::run(lab, Position::Kernel).await;
    the_probes_hold_in_a_used_kernel:
        async |lab| batch::run(lab, Position::UsedKernel).await;
    the_probes_hold_in_a_grandchild_of_the_kernel:
        async |lab| batch::run(lab, Position::DetachedKernel).await;
    the_probes_hold_in_a_program_of_the_kernel:
        async |lab| batch::run(lab, Position::ProgramOfKernel).await;
    the_tree_holds_no_privilege_and_no_secret:
        async |lab| batch::run_walks(lab).await;
}
