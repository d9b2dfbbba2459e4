//! The first steps of a template's process, from the clone to the start of Python.
//!
//! It is made as a box is made, of the same layers, so that every path that Python sees while it
//! loads leads to the same file in a box. What differs: it stays in the pod's user namespace,
//! whose first id it has, because only from there can boxes be joined; and it has no capability
//! in the pod, so all that its id is worth is that the boxes' namespaces belong to it.

use std::convert::Infallible;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::limits::Limits;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Signal, set_parent_process_death_signal};
use rustix::thread::CapabilitySet;

use super::order::{Answer, LINE, send};
use crate::control::Fault;
use crate::create::explain::explain;
use crate::create::preparation::PYTHON;
use crate::create::step::{Failed, InStep as _, Step};
use crate::create::{mounts, privileges};
use crate::mutation::{Mutation, Omissions};
use crate::policy::landlock::restrict_template;
use crate::sys;
use crate::sys::descriptors::{close_from, inherited, place};
use crate::sys::execute::execute;

/// The module that loads everything and takes orders.
const MODULE: &CStr = c"glovebox_kernel.template";

/// What it is called, as a box is: Python may remember it.
const HOSTNAME: &[u8] = b"glovebox";

/// The template's id in the pod: the launcher's.
const ID: u32 = 0;

/// Nobody sees more than another in its `/proc`.
const NO_AGENT: AgentIds = AgentIds {
    agent: ID,
    workload: ID,
};

/// Descriptors are moved up here before they are put in place, so that none is in another's way.
const ASIDE: i32 = 64;

/// Everything the process needs.
pub(super) struct Plan {
    /// The option string of the root mount.
    pub(super) layers: CString,
    /// The doors of its control groups, where it cannot be cloned into them.
    pub(super) doors: Vec<OwnedFd>,
    /// Its end of the line.
    pub(super) line: OwnedFd,
    pub(super) environment: Vec<CString>,
    pub(super) omissions: Omissions,
}

/// Sets the process up and becomes Python. Comes back only when that failed, with the status to
/// end with; what failed has been told over the line.
pub(super) fn run(plan: Plan) -> i32 {
    let Plan {
        layers,
        doors,
        mut line,
        environment,
        omissions,
    } = plan;
    let ready = set_up(&layers, doors, &omissions)
        .and_then(|()| confine(&mut line, &omissions))
        .and_then(|()| become_python(&environment));
    let Err(failed) = ready;
    let fault = match failed.step {
        Step::Execute => Fault::failed(
            format!("starting {PYTHON} for a template"),
            Errno::from_raw_os_error(failed.errno),
        )
        .with_fix("set Glovebox up again"),
        _ => explain(failed),
    };
    let answer = Answer::Failed {
        cause: fault.to_string(),
        fix: fault.fix,
    };
    // If the launcher is gone, there is nobody to tell.
    let _ = send(&line, &answer, &[]);
    1
}

fn set_up(layers: &CStr, doors: Vec<OwnedFd>, omissions: &Omissions) -> Result<(), Failed> {
    set_parent_process_death_signal(Some(Signal::KILL)).step(Step::DieWithParent)?;
    // First of all, so that everything that is made here is counted.
    for door in doors {
        rustix::io::write(&door, b"0").step(Step::Join)?;
    }
    rustix::process::setsid().step(Step::Session)?;
    sys::signals::reset().step(Step::Session)?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    mounts::cut_off().step(Step::PrivateMounts)?;
    mounts::root(layers, omissions).step(Step::Root)?;
    let limits = folders();
    mounts::workspace(&limits, ID, omissions).step(Step::Workspace)?;
    mounts::tmp(&limits, ID, omissions).step(Step::Tmp)?;
    mounts::devices(ID, omissions).step(Step::Devices)?;
    mounts::shared_memory(&limits, ID, omissions).step(Step::SharedMemory)?;
    mounts::proc(NO_AGENT, omissions).step(Step::Proc)?;
    mounts::pivot(omissions).step(Step::Pivot)?;
    rustix::system::sethostname(HOSTNAME).step(Step::Names)?;
    rustix::system::setdomainname(b"").step(Step::Names)?;
    // Where a kernel begins.
    rustix::process::chdir("/workspace").step(Step::Workspace)
}

/// What its folders hold: nothing is left in them for long.
const fn folders() -> Limits {
    Limits {
        workspace_bytes: 1024 * 1024,
        workspace_inodes: 64,
        ..Limits::of(ResourceClass::Small)
    }
}

fn confine(line: &mut OwnedFd, omissions: &Omissions) -> Result<(), Failed> {
    // Those that are the same in every box. The others stay as they are: what is lowered here
    // could not be raised in a copy.
    if !omissions.omits(Mutation::ResourceLimits) {
        privileges::limit_process(omissions).step(Step::ResourceLimits)?;
    }
    arrange(line).step(Step::Descriptors)?;
    privileges::drop_capabilities(CapabilitySet::empty(), omissions).step(Step::Capabilities)?;
    if omissions.omits(Mutation::NoNewPrivileges) {
        return Ok(());
    }
    rustix::thread::set_no_new_privs(true).step(Step::NoNewPrivileges)?;
    restrict_template().step(Step::Landlock)
}

/// Null streams, the line behind them, and nothing else.
fn arrange(line: &mut OwnedFd) -> rustix::io::Result<()> {
    let null = {
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        fcntl_dupfd_cloexec(&null, ASIDE)?
    };
    let aside = fcntl_dupfd_cloexec(&*line, ASIDE)?;
    let placed = (0..LINE)
        .try_for_each(|number| place(null.as_fd(), number))
        .and_then(|()| place(aside.as_fd(), LINE))
        .and_then(|()| inherited(LINE))
        .map_err(errno)?;
    // Closed with everything else that has no place.
    std::mem::forget(std::mem::replace(line, placed));
    std::mem::forget((null, aside));
    close_from(LINE + 1).map_err(errno)
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

fn become_python(environment: &[CString]) -> Result<Infallible, Failed> {
    let path = CString::new(PYTHON)
        .map_err(|_| Errno::INVAL)
        .step(Step::Execute)?;
    // Files of the working folder must not stand in for modules (`-P`).
    let arguments = [path.as_c_str(), c"-P", c"-m", MODULE].map(CStr::to_owned);
    Err(execute(&path, &arguments, environment)).step(Step::Execute)
}
