//! `glovebox-exec`: turns a fresh process of the agent into a sealed workload.

use std::process::ExitCode;

fn main() -> ExitCode {
    glovebox_box::exec::run(std::env::args_os().skip(1))
}
