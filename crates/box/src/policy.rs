//! Which system calls, socket families and files a process in a box may use.
//!
//! The tables are data with a reason for each line; nothing in here depends on the machine but
//! its processor. [`seccomp`] and [`landlock`] turn them into rules for the kernel.

mod container;
mod halving;
pub(crate) mod landlock;
pub(crate) mod seccomp;
pub(crate) mod syscalls;

pub use container::container_profile;
