//! The kernel: one long-lived interpreter that runs code call by call and keeps its variables.
//!
//! The runner in `sandbox/kernel` speaks Jupyter message contents over one socket; everything
//! that it says is hostile, because user code shares its process. Output does not travel on the
//! socket: each call has two pipes of its own, so that what an earlier call left running cannot
//! write into a later one.

mod call;
mod clock;
mod converse;
mod facts;
mod host;
mod late;
mod live;
mod make;
mod message;
mod pipes;
mod run;
mod start_log;
mod starting;
mod supply;
mod wire;

pub(crate) use host::{KernelHost, Parts};
pub(crate) use supply::Supply;
