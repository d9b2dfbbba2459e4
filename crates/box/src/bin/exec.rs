//! `glovebox-exec`: turns a fresh process of the agent into a sealed workload.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(125)
}
