//! What the exec helper does, in this order.
//!
//! Joining the control groups comes first, because whoever opened their doors was the agent; the
//! filter of system calls comes last, because everything before it needs calls that a workload
//! must not have.

use std::ffi::CString;

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Resource, Uid, getegid, geteuid, set_dumpable_behavior,
};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, capability_is_in_ambient_set,
    capability_is_in_bounding_set, clear_ambient_capability_set, set_capabilities,
    set_thread_res_gid, set_thread_res_uid,
};

use super::arguments::{Arguments, InvalidArguments};
use super::program::{Environment, become_program};
use super::{FAILED, NOT_EXECUTABLE, NOT_FOUND};
use crate::create::privileges::{empty_bounding_set, fix, limit_process};
use crate::fault::chain;
use crate::mutation::{Mutation, Omissions};
use crate::policy::landlock::restrict_workload;
use crate::policy::seccomp::Filters;
use crate::sys;

/// How the exec helper can fail.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// The arguments are wrong.
    #[error("{0}")]
    Arguments(#[source] InvalidArguments),
    /// A step before the program failed.
    #[error("{doing}")]
    Step {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
    /// A right that was given up is still there.
    #[error("{what} is still there")]
    NotGivenUp {
        /// Which.
        what: &'static str,
    },
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
            Self::Arguments(_) | Self::Step { .. } | Self::NotGivenUp { .. } => FAILED,
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
        return error;
    }
    let error = become_program(&arguments.program, &environment);
    let name = arguments.program.first().map(CString::as_c_str);
    ExecError::Program {
        program: name.unwrap_or_default().to_string_lossy().into_owned(),
        source: error.into(),
    }
}

fn seal(arguments: &Arguments) -> Result<(), ExecError> {
    let omissions = Omissions::of_this_box();
    if let Some(score) = arguments.oom_score_adj {
        // While the file is still ours: it becomes root's with the next step.
        set_oom_score(score)?;
    }
    set_dumpable_behavior(DumpableBehavior::NotDumpable).in_step("becoming non-dumpable")?;
    for group in &arguments.groups {
        join(*group)?;
    }
    if !omissions.omits(Mutation::Session) {
        // A process that leads its group cannot start a session; the agent's children never do.
        rustix::process::setsid().in_step("starting a session")?;
    }
    sys::signals::reset().in_step("resetting signals")?;
    // With one id for both, the kernel would let a workload do to the agent what it may do to itself.
    let shares_id = geteuid().as_raw() == arguments.uid;
    take_ids(arguments)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    rustix::process::chdir(arguments.cwd.as_c_str()).in_step("entering the working folder")?;
    if !omissions.omits(Mutation::Capabilities) {
        give_up_capabilities()?;
    }
    if !omissions.omits(Mutation::ResourceLimits) {
        limit_resources(arguments, &omissions)?;
    }
    if !omissions.omits(Mutation::CloseWorkloadDescriptors) {
        sys::descriptors::close_from(FIRST_OWN).in_step("closing descriptors")?;
    }
    if omissions.omits(Mutation::NoNewPrivileges) {
        // Without it the kernel takes neither rules nor filters.
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true).in_step("ruling out new privileges")?;
    if !omissions.omits(Mutation::LandlockWorkload) {
        restrict_workload().in_step("restricting files and signals")?;
    }
    limit_calls(shares_id, &omissions)
}

/// The first descriptor that is not one of the three standard ones.
const FIRST_OWN: i32 = 3;

fn set_oom_score(score: i32) -> Result<(), ExecError> {
    let doing = "setting the order in which the kernel kills";
    set_dumpable_behavior(DumpableBehavior::Dumpable).in_step(doing)?;
    fs_err::write("/proc/self/oom_score_adj", score.to_string()).in_step(doing)
}

fn join(group: i32) -> Result<(), ExecError> {
    let doing = "joining the workload's control group";
    let door = sys::descriptors::inherited(group).in_step(doing)?;
    rustix::io::write(&door, b"0").in_step(doing).map(drop)
}

/// With one id for agent and workload there is nothing to change, and nothing that may.
fn take_ids(arguments: &Arguments) -> Result<(), ExecError> {
    let doing = "taking the workload's ids";
    if getegid().as_raw() != arguments.gid {
        let gid = Gid::from_raw(arguments.gid);
        set_thread_res_gid(gid, gid, gid).in_step(doing)?;
    }
    if geteuid().as_raw() != arguments.uid {
        let uid = Uid::from_raw(arguments.uid);
        set_thread_res_uid(uid, uid, uid).in_step(doing)?;
    }
    // A change of ids makes a process dumpable or not by rules of its own.
    set_dumpable_behavior(DumpableBehavior::NotDumpable).in_step(doing)
}

/// Drops every capability from every set, and looks that none is left.
fn give_up_capabilities() -> Result<(), ExecError> {
    let doing = "giving up capabilities";
    let none = CapabilitySet::empty();
    clear_ambient_capability_set().in_step(doing)?;
    let bounded = any(capability_is_in_bounding_set)?;
    if bounded {
        // Only where nobody has emptied it before: in a container of an engine.
        empty_bounding_set().in_step(doing)?;
    }
    set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
    .in_step(doing)?;
    let left = capabilities(None).in_step(doing)?;
    if !(left.effective | left.permitted | left.inheritable).is_empty() {
        return Err(ExecError::NotGivenUp {
            what: "a capability",
        });
    }
    if any(capability_is_in_ambient_set)? {
        return Err(ExecError::NotGivenUp {
            what: "an ambient capability",
        });
    }
    if any(capability_is_in_bounding_set)? {
        return Err(ExecError::NotGivenUp {
            what: "a capability of the bounding set",
        });
    }
    Ok(())
}

/// Whether a set has any capability that this kernel knows.
fn any(is_in: impl Fn(CapabilitySet) -> rustix::io::Result<bool>) -> Result<bool, ExecError> {
    for number in 0..u64::BITS {
        match is_in(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(false) => {}
            Ok(true) => return Ok(true),
            Err(Errno::INVAL) => break,
            Err(error) => return Err(error).in_step("looking at capabilities"),
        }
    }
    Ok(false)
}

fn limit_resources(arguments: &Arguments, omissions: &Omissions) -> Result<(), ExecError> {
    let doing = "limiting what one process may use";
    fix(Resource::Nofile, arguments.open_files).in_step(doing)?;
    fix(Resource::Fsize, arguments.file_size).in_step(doing)?;
    limit_process(omissions).in_step(doing)
}

/// The list last: it has no call any more with which a filter could be loaded.
fn limit_calls(shares_id: bool, omissions: &Omissions) -> Result<(), ExecError> {
    let doing = "limiting system calls";
    let filters = Filters::workload(shares_id).in_step(doing)?;
    filters.load_answers(omissions).in_step(doing)?;
    if !omissions.omits(Mutation::SeccompWorkload) {
        filters.list.load().in_step(doing)?;
    }
    Ok(())
}

/// Says in which step an operation failed.
trait InStep<T> {
    fn in_step(self, doing: &'static str) -> Result<T, ExecError>;
}

impl<T, E: Into<std::io::Error>> InStep<T> for Result<T, E> {
    fn in_step(self, doing: &'static str) -> Result<T, ExecError> {
        self.map_err(|error| ExecError::Step {
            doing,
            source: error.into(),
        })
    }
}
