//! The launcher's inner process: process 1 of the pod, id 0 of its user namespace, nobody of note
//! on the host.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Gid, Resource, Rlimit, Signal, Uid, getrlimit, set_dumpable_behavior,
    set_parent_process_death_signal, setrlimit,
};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use super::caller::Caller;
use super::line::Line;
use super::outer::say;
use super::pod::Pod;
use crate::cgroup::pod::PodGroups;
use crate::control::{Fault, FromLauncher, LauncherConfig, PodFacts};
use crate::create::counts;
use crate::create::mounts::cut_off;
use crate::create::parent::Surroundings;
use crate::ids::pod::PodIds;
use crate::ids::slots::Slots;
use crate::mutation::{Mutation, Omissions};
use crate::policy::seccomp::Filters;
use crate::sys::clone::SingleThread;

/// What the outer process has prepared.
pub(super) struct Inheritance {
    pub(super) facts: PodFacts,
    pub(super) ids: PodIds,
    pub(super) config: LauncherConfig,
    pub(super) run: PathBuf,
    pub(super) run_folder: OwnedFd,
    pub(super) pod: Rc<PodGroups>,
    pub(super) slots: Slots,
    pub(super) host_cpus: u32,
    pub(super) omissions: Omissions,
    /// Where the next runtime comes in, where there is to be one.
    pub(super) door: Option<OwnedFd>,
    /// Says when the maps are written; closes when the outer process ends.
    pub(super) lifeline: OwnedFd,
}

/// Serves the runtime until it closes the line. Gives the status to end with.
pub(super) fn run(line: &mut Line, inheritance: Inheritance) -> i32 {
    match serve(line, inheritance) {
        Ok(()) => 0,
        Err(fault) => {
            say(&fault);
            // If the runtime is gone, there is nobody to tell.
            let _ = line.send(&FromLauncher::Failed { id: 0, fault });
            1
        }
    }
}

fn serve(line: &mut Line, inheritance: Inheritance) -> Result<(), Fault> {
    let Inheritance {
        facts,
        ids,
        config,
        run,
        run_folder,
        pod,
        slots,
        host_cpus,
        omissions,
        door,
        lifeline,
    } = inheritance;
    let failed = |error: Errno| Fault::failed("settling in the pod", error);
    // Before the wait: if the outer process dies first, the wait ends.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    if !released(&lifeline).map_err(failed)? {
        return Ok(());
    }
    take_ids(ids.has_range()).map_err(failed)?;
    // The change of ids has cleared it.
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(failed)?;
    // And has made the files in /proc of this process, and of those cloned from it, the host
    // root's, so that we could not write their maps.
    set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(failed)?;
    cut_off().map_err(|error| {
        failed(error).with_fix(
            "this machine forbids mounts in user namespaces; `glovebox doctor` says what forbids it",
        )
    })?;
    if !omissions.omits(Mutation::UserCounts) {
        counts::limit_pod().map_err(|error| {
            Fault::failed("limiting what the kernel counts for a user", error).with_fix(
                "the host's /proc/sys cannot be written, as in containers of an engine; run Glovebox outside of a container",
            )
        })?;
    }
    // Each box takes a few of them.
    let files = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: files.maximum,
            ..files
        },
    )
    .map_err(failed)?;
    let surroundings = Surroundings {
        one_thread: SingleThread::verify()
            .map_err(|error| Fault::failed("settling in the pod", error))?,
        installation: config.installation,
        run,
        run_folder,
        pod,
        host_cpus,
        filters: Filters::agent()
            .map_err(|error| Fault::failed("building the agent's filters", error))?,
        omissions,
    };
    let pod = Pod::new(surroundings, slots, ids, config.renewal)?;
    line.send(&FromLauncher::Ready(facts.clone()))
        .map_err(|error| Fault::failed("answering the runtime", error))?;
    let caller = Caller::new(line, door, config, facts);
    super::serve::until_closed(caller, &lifeline, pod)
}

/// Waits for the outer process's word. `false` when it is gone.
fn released(lifeline: &OwnedFd) -> rustix::io::Result<bool> {
    let mut byte = [0];
    loop {
        match rustix::io::read(lifeline, &mut byte) {
            Ok(count) => return Ok(count == 1),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Becomes id 0 of the pod, whether or not it has more ids than that one.
pub(crate) fn become_first_id() -> rustix::io::Result<()> {
    take_ids(false)
}

/// Becomes id 0 of the pod. With one id for all, groups of the user cannot be left: the kernel
/// allows that only to those who may map groups.
fn take_ids(may_leave_groups: bool) -> rustix::io::Result<()> {
    if may_leave_groups {
        set_thread_groups(&[])?;
    }
    let (uid, gid) = (Uid::ROOT, Gid::ROOT);
    set_thread_res_gid(gid, gid, gid)?;
    set_thread_res_uid(uid, uid, uid)
}
