//! What the exec helper does, in this order.
//!
//! Joining the control groups comes first, because whoever opened their doors was the agent; then
//! come the steps that every workload takes, see [`crate::seal`].

use std::ffi::CString;

use rustix::io::Errno;
use rustix::process::{DumpableBehavior, geteuid, set_dumpable_behavior};

use super::arguments::{Arguments, InvalidArguments};
use super::program::{Environment, become_program};
use super::{FAILED, NOT_EXECUTABLE, NOT_FOUND};
use crate::fault::chain;
use crate::mutation::Omissions;
use crate::policy::seccomp::Filters;
use crate::seal::{InStep as _, Seal, SealError};
use crate::sys;

/// How the exec helper can fail.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The arguments are wrong.
    #[error("{0}")]
    Arguments(#[source] InvalidArguments),
    /// A step before the program failed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The program could not be executed.
    #[error("{program}")]
    Program {
        /// Which.
        program: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl ExecError {
    /// The exit status that says it.
    #[must_use]
    pub fn status(&self) -> u8 {
        match self {
            Self::Program { source, .. }
                if matches!(
                    Errno::from_io_error(source),
                    Some(Errno::NOENT | Errno::NOTDIR)
                ) =>
            {
                NOT_FOUND
            }
            Self::Program { .. } => NOT_EXECUTABLE,
            Self::Arguments(_) | Self::Seal(_) => FAILED,
        }
    }

    /// The whole error on one line, whatever the program is called.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        match self {
            Self::Arguments(error) => error.to_string(),
            other => chain(other).escape_debug().to_string(),
        }
    }
}

/// Does all of it. Comes back only with what went wrong.
pub(super) fn become_workload(arguments: &Arguments) -> ExecError {
    let environment = Environment::inherited();
    if let Err(error) = seal(arguments) {
        return error.into();
    }
    let error = become_program(&arguments.program, &environment);
    let name = arguments.program.first().map(CString::as_c_str);
    ExecError::Program {
        program: name.unwrap_or_default().to_string_lossy().into_owned(),
        source: error.into(),
    }
}

fn seal(arguments: &Arguments) -> Result<(), SealError> {
    let omissions = Omissions::of_this_box();
    if let Some(score) = arguments.oom_score_adj {
        // While the file is still ours: it becomes root's with the next step.
        set_oom_score(score)?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).in_step("becoming non-dumpable")?;
    for group in &arguments.groups {
        join(*group)?;
    }
    sys::signals::reset().in_step("resetting signals")?;
    // With one id for both, the kernel would let a workload do to the agent what it may do to
    // itself.
    let shares_id = geteuid().as_raw() == arguments.uid;
    Seal {
        uid: arguments.uid,
        gid: arguments.gid,
        cwd: &arguments.cwd,
        open_files: arguments.open_files,
        file_size: arguments.file_size,
        close_from: FIRST_OWN,
        filters: &Filters::workload(shares_id).in_step("building filters of system calls")?,
        omissions: &omissions,
    }
    .apply()
}

/// The first descriptor that is not one of the three standard ones.
const FIRST_OWN: i32 = 3;

fn set_oom_score(score: i32) -> Result<(), SealError> {
    let doing = "setting the order in which the kernel kills";
    set_dumpable_behavior(DumpableBehavior::Dumpable).in_step(doing)?;
    fs_err::write("/proc/self/oom_score_adj", score.to_string()).in_step(doing)
}

fn join(group: i32) -> Result<(), SealError> {
    let doing = "joining the workload's control group";
    let door = sys::descriptors::inherited(group).in_step(doing)?;
    rustix::io::write(&door, b"0").in_step(doing).map(drop)
}
