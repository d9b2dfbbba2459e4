//! Programs: how they are started, fed, read, limited and ended.

mod launch;
mod oom;
mod output;
mod proc;
mod reaper;
mod registry;
mod run;
mod sink;
mod workload;

pub use launch::Spawner;
pub(crate) use launch::{Launch, Launcher, check_env};
pub(crate) use oom::OomCounter;
pub(crate) use output::{Pipe, Taken, pipe};
pub(crate) use reaper::{Child, Exit, Reaper};
pub(crate) use registry::{Asked, Claim, Registry, Running};
pub(crate) use run::{cancel, milliseconds_since, start, stdin};
pub(crate) use sink::{Pace, Sink};
pub(crate) use workload::{Tenant, Workload};

/// How long an interrupt may take to help a program before it is killed. With it a program is
/// gone within a second of its limit, whatever it does.
const PROGRAM_GRACE: std::time::Duration = std::time::Duration::from_millis(800);

/// The same for a kernel: longer, because its variables are lost with it.
pub(crate) const KERNEL_GRACE: std::time::Duration = std::time::Duration::from_secs(2);
