//! The exec helper: turns a fresh process of the agent into a sealed workload.
//!
//! It runs as the agent's child, with the agent's ids and capabilities, and gives up everything
//! before it becomes the program that was asked for. It reads no file and no configuration: all
//! it does is in its arguments.

mod arguments;
mod order;
mod program;

use std::ffi::OsString;
use std::process::ExitCode;

pub use arguments::{Arguments, InvalidArguments};
pub use order::ExecError;

pub use crate::seal::SealError;

/// The helper itself failed.
pub const FAILED: u8 = 125;
/// The program is there and cannot be executed.
pub const NOT_EXECUTABLE: u8 = 126;
/// There is no such program.
pub const NOT_FOUND: u8 = 127;

/// Runs the helper with what comes after its own name. Comes back only when it failed, with one
/// clear line on standard error.
#[must_use]
pub fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    use std::io::Write as _;
    let error = match Arguments::parse(arguments) {
        Ok(arguments) => order::become_workload(&arguments),
        Err(error) => ExecError::Arguments(error),
    };
    // There is no other place for it.
    let _ = writeln!(std::io::stderr(), "glovebox-exec: {}", error.in_one_line());
    ExitCode::from(error.status())
}
