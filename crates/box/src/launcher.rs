//! The launcher: makes the pod, serves one runtime over one socket, and leaves nothing behind.
//!
//! Two processes. The [`outer`] one has the rights of whoever started it; it prepares what needs
//! them, clones the [`inner`] one into a user namespace of unprivileged ids, the pod, and from
//! then on waits for it and takes away its folders. The inner one is process 1 of a process
//! namespace: when it dies, for whatever reason, the kernel ends every box with it.

mod boxes;
mod ids;
mod inner;
mod line;
pub(crate) mod machine;
mod outer;
mod run_folder;
mod serve;
pub(crate) mod slots;
pub(crate) mod subordinate;

use std::process::ExitCode;

pub use subordinate::{Range, SubordinateError};

/// Runs the launcher on the control socket that this program was started with as its standard
/// input, until that is closed. The status says whether nothing was left behind.
#[must_use]
pub fn run() -> ExitCode {
    outer::run()
}
