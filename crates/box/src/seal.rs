//! The seal of a workload: everything that a process gives up before it runs anybody's code.
//!
//! One list of steps for both ways in which a workload comes into being. The exec helper takes
//! them before it becomes a program, a copy of a template before it runs code. Both have joined
//! the workload's control groups before, and both are under the agent's rules already: the helper
//! because it is the agent's child, the copy because it has put itself under them.

use std::ffi::CStr;
use std::io;

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

use crate::create::privileges::{empty_bounding_set, fix, limit_process};
use crate::mutation::{Mutation, Omissions};
use crate::policy::landlock::restrict_workload;
use crate::policy::seccomp::Filters;
use crate::sys;

/// How sealing can fail.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// A step failed.
    #[error("{doing}")]
    Step {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A right that was given up is still there.
    #[error("{what} is still there")]
    NotGivenUp {
        /// Which.
        what: &'static str,
    },
}

/// What a workload is sealed with.
#[derive(Debug)]
pub(crate) struct Seal<'a> {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The working folder.
    pub(crate) cwd: &'a CStr,
    /// Descriptors that one process may hold.
    pub(crate) open_files: u64,
    /// Largest file that may be written, in bytes.
    pub(crate) file_size: u64,
    /// The first descriptor that is closed, with all behind it.
    pub(crate) close_from: i32,
    /// The workload's filters of system calls.
    pub(crate) filters: &'a Filters,
    pub(crate) omissions: &'a Omissions,
}

impl Seal<'_> {
    /// Takes all steps, in this order. The filter of system calls comes last, because everything
    /// before it needs calls that a workload must not have.
    ///
    /// # Errors
    /// The first step that failed. The process must not go on then.
    pub(crate) fn apply(&self) -> Result<(), SealError> {
        let omissions = self.omissions;
        if !omissions.omits(Mutation::Session) {
            // A process that leads its group cannot start a session; none that comes here does.
            rustix::process::setsid().in_step("starting a session")?;
        }
        self.take_ids()?;
        rustix::process::umask(Mode::from_raw_mode(0o022));
        rustix::process::chdir(self.cwd).in_step("entering the working folder")?;
        if !omissions.omits(Mutation::Capabilities) {
            give_up_capabilities(omissions)?;
        }
        if !omissions.omits(Mutation::ResourceLimits) {
            self.limit_resources()?;
        }
        if !omissions.omits(Mutation::CloseWorkloadDescriptors) {
            sys::descriptors::close_from(self.close_from).in_step("closing descriptors")?;
        }
        if omissions.omits(Mutation::NoNewPrivileges) {
            // Without it the kernel takes neither rules nor filters.
            return Ok(());
        }
        rustix::thread::set_no_new_privs(true).in_step("ruling out new privileges")?;
        if !omissions.omits(Mutation::LandlockWorkload) {
            restrict_workload().in_step("restricting files and signals")?;
        }
        self.limit_calls()
    }

    /// With one id for agent and workload there is nothing to change, and nothing that may.
    fn take_ids(&self) -> Result<(), SealError> {
        let doing = "taking the workload's ids";
        if getegid().as_raw() != self.gid {
            let gid = Gid::from_raw(self.gid);
            set_thread_res_gid(gid, gid, gid).in_step(doing)?;
        }
        if geteuid().as_raw() != self.uid {
            let uid = Uid::from_raw(self.uid);
            set_thread_res_uid(uid, uid, uid).in_step(doing)?;
        }
        // A change of ids makes a process dumpable or not by rules of its own.
        set_dumpable_behavior(DumpableBehavior::NotDumpable).in_step(doing)
    }

    fn limit_resources(&self) -> Result<(), SealError> {
        let doing = "limiting what one process may use";
        fix(Resource::Nofile, self.open_files).in_step(doing)?;
        fix(Resource::Fsize, self.file_size).in_step(doing)?;
        limit_process(self.omissions).in_step(doing)
    }

    /// The list last: it has no call any more with which a filter could be loaded.
    fn limit_calls(&self) -> Result<(), SealError> {
        let doing = "limiting system calls";
        self.filters.load_answers(self.omissions).in_step(doing)?;
        if !self.omissions.omits(Mutation::SeccompWorkload) {
            self.filters.list.load().in_step(doing)?;
        }
        Ok(())
    }
}

/// Drops every capability from every set, and looks that none is left.
fn give_up_capabilities(omissions: &Omissions) -> Result<(), SealError> {
    let doing = "giving up capabilities";
    let none = CapabilitySet::empty();
    clear_ambient_capability_set().in_step(doing)?;
    let keeps_bounding = omissions.omits(Mutation::BoundingSet);
    if !keeps_bounding && any(capability_is_in_bounding_set)? {
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
        return Err(SealError::NotGivenUp {
            what: "a capability",
        });
    }
    if any(capability_is_in_ambient_set)? {
        return Err(SealError::NotGivenUp {
            what: "an ambient capability",
        });
    }
    if !keeps_bounding && any(capability_is_in_bounding_set)? {
        return Err(SealError::NotGivenUp {
            what: "a capability of the bounding set",
        });
    }
    Ok(())
}

/// Whether a set has any capability that this kernel knows.
fn any(is_in: impl Fn(CapabilitySet) -> rustix::io::Result<bool>) -> Result<bool, SealError> {
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

/// Says in which step an operation failed.
pub(crate) trait InStep<T> {
    fn in_step(self, doing: &'static str) -> Result<T, SealError>;
}

impl<T, E: Into<io::Error>> InStep<T> for Result<T, E> {
    fn in_step(self, doing: &'static str) -> Result<T, SealError> {
        self.map_err(|error| SealError::Step {
            doing,
            source: error.into(),
        })
    }
}
