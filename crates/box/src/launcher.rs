//! The launcher: makes the pod, serves one runtime at a time, and leaves nothing behind.
//!
//! Two processes. The `outer` one has the rights of whoever started it; it prepares what needs
//! them, clones the `inner` one into a user namespace of unprivileged ids, the pod, and from
//! then on waits for it and takes away its folders. The inner one is process 1 of a process
//! namespace: when it dies, for whatever reason, the kernel ends every box with it.

mod agent_line;
mod agents;
mod boxes;
mod caller;
mod copying;
mod ending;
mod events;
pub(crate) mod inner;
mod keeping;
mod kernels;
mod line;
pub(crate) mod machine;
mod making;
pub(crate) mod outer;
mod pod;
mod pools;
mod removing;
mod renewing;
mod run_folder;
mod serve;
mod spare;
mod templates;
mod timers;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

/// Runs the launcher with what comes after its own name.
///
/// Without arguments it serves the control socket that it was started with as its standard input,
/// until that is closed, or longer where it is told to stay; the status says whether nothing was left behind. With `--try` it tries
/// what a box needs and prints what it found, for [`crate::probe`].
#[must_use]
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match arguments.next() {
        None => outer::run(),
        Some(word) if word == "--try" => crate::probe::trial::run(arguments),
        Some(_) => {
            outer::say("this program is started by Glovebox and takes no arguments");
            ExitCode::FAILURE
        }
    }
}
