//! The sealed box itself: namespaces, mounts, control groups, seccomp and Landlock.
//!
//! This crate is the only home of `unsafe` code. It does not speak to agents and knows nothing
//! of kernels, files or artifacts: it makes a place from which nothing can be reached, starts
//! one program in it, and takes it down again.

pub mod cgroup;
pub mod control;
mod create;
pub mod exec;
mod fault;
mod ids;
pub mod launcher;
pub mod mutation;
mod policy;
pub mod prepare;
pub mod probe;
mod seal;
mod sys;
mod template;
pub mod weakness;

pub use policy::container_profile;
pub use sys::landlock_abi::landlock_abi;
