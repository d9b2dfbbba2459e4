//! The launcher's side of making a box: the order of its steps.

use std::cell::Cell;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_protocol::ids::InstallationId;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use super::child::{self, Plan};
use super::descriptors;
use super::explain::explain;
use super::preparation::{Pipes, bind_socket, check_layers, config_file};
use super::remains::Remains;
use super::report::collect;
use crate::cgroup::CgroupError;
use crate::cgroup::group::BoxGroups;
use crate::cgroup::pod::PodGroups;
use crate::control::{BoxSpec, Fault};
use crate::fault::chain;
use crate::ids::slots::{BoxIds, Slots};
use crate::mutation::{Mutation, Omissions};
use crate::policy::seccomp::Filters;
use crate::sys::clone::{Cloned, SingleThread, clone_process};

/// How long a box is given to set itself up.
const SETUP_PATIENCE: Duration = Duration::from_secs(10);

/// How long a killed box is given to end.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// How long the remains of a box that failed are given to go away.
const UNDO_PATIENCE: Duration = Duration::from_secs(5);

/// What is the same for all boxes of a launcher.
pub(crate) struct Surroundings {
    pub(crate) one_thread: SingleThread,
    pub(crate) installation: InstallationId,
    /// The folder for sockets, by the name that the runtime uses.
    pub(crate) run: PathBuf,
    /// The same folder, open.
    pub(crate) run_folder: OwnedFd,
    pub(crate) pod: Rc<PodGroups>,
    pub(crate) host_cpus: u32,
    /// The agent's filters of system calls, built once.
    pub(crate) filters: Filters,
    /// Left out of every box.
    pub(crate) omissions: Omissions,
}

/// A box that was made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) process: Cloned,
    pub(crate) host_pid: i32,
    pub(crate) remains: Remains,
    /// What the agent says on its standard error.
    pub(crate) words: OwnedFd,
    pub(crate) socket: PathBuf,
    pub(crate) ids: BoxIds,
    pub(crate) stages_us: Vec<(String, u64)>,
}

/// Makes a box. On failure nothing of it is left.
///
/// # Errors
/// What could not be done, why, and what to do about it.
pub(crate) fn make(
    surroundings: &Surroundings,
    slots: &mut Slots,
    spec: &BoxSpec,
) -> Result<Made, Fault> {
    let mut remains = Remains::default();
    match try_make(surroundings, slots, spec, &mut remains) {
        Ok(made) => Ok(Made { remains, ..made }),
        Err(fault) => {
            let cleared = remains.clear(slots, &surroundings.run_folder, UNDO_PATIENCE);
            Err(fault.and_then(cleared))
        }
    }
}

fn try_make(
    surroundings: &Surroundings,
    slots: &mut Slots,
    spec: &BoxSpec,
    remains: &mut Remains,
) -> Result<Made, Fault> {
    let mut clock = Stages::start();
    let omissions = surroundings.omissions.with(spec);
    let layers = check_layers(&spec.kind.layers)?;
    let ids = take_ids(slots, remains, &omissions)?;
    let groups = remains
        .groups
        .insert(make_groups(surroundings, spec, &omissions)?);
    clock.mark("cgroups");
    let (socket, listener) = bind_socket(surroundings, &spec.sandbox.to_string())?;
    remains.socket = Some(spec.sandbox.to_string());
    let doors = if omissions.omits(Mutation::WorkCgroup) {
        Vec::new()
    } else {
        groups.work_doors(ids.pod.agent).map_err(in_groups)?
    };
    let oom_events = groups.oom_events().map_err(in_groups)?.map(OwnedFd::from);
    let numbers = descriptors::numbers(doors.len(), oom_events.is_some());
    let plan = Plan {
        ids: ids.inside,
        limits: spec.kind.limits.clone(),
        layers,
        own_doors: groups.agent_doors().map_err(in_groups)?,
        config: config_file(surroundings, spec, ids.inside, numbers)?,
        listener,
        oom_events,
        doors,
        omissions: omissions.clone(),
    };
    clock.mark("descriptors");
    let running = launch(surroundings, groups, plan)?;
    clock.mark("clone");
    match start(&running, ids, &omissions, &mut clock) {
        Ok(host_pid) => Ok(Made {
            process: running.process,
            host_pid,
            remains: Remains::default(),
            words: running.words,
            socket,
            ids,
            stages_us: clock.stages,
        }),
        Err(fault) => Err(fault.and_then(end(&running.process))),
    }
}

fn take_ids(
    slots: &mut Slots,
    remains: &mut Remains,
    omissions: &Omissions,
) -> Result<BoxIds, Fault> {
    let doing = "choosing ids for the box";
    let taken = slots.take().map_err(|error| Fault::failed(doing, error))?;
    let (slot, ids) = taken.ok_or_else(|| {
        Fault::exhausted(doing, "all subordinate ids are taken by other sandboxes")
            .with_fix("end a sandbox, or give this user a larger range of subordinate ids")
    })?;
    remains.slot = Some(slot);
    if omissions.omits(Mutation::UniqueIds) {
        return Ok(BoxIds::of_slot(0));
    }
    Ok(ids)
}

fn make_groups(
    surroundings: &Surroundings,
    spec: &BoxSpec,
    omissions: &Omissions,
) -> Result<BoxGroups, Fault> {
    BoxGroups::make(
        &surroundings.pod,
        &spec.sandbox.to_string(),
        &spec.kind.limits,
        surroundings.host_cpus,
        omissions,
    )
    .map_err(in_groups)
}

fn in_groups(error: CgroupError) -> Fault {
    Fault::failed("making the box's control groups", chain(&error))
}

/// A first process that waits to be released.
struct Running {
    process: Cloned,
    release: OwnedFd,
    report: OwnedFd,
    words: OwnedFd,
}

fn launch(surroundings: &Surroundings, groups: &BoxGroups, plan: Plan) -> Result<Running, Fault> {
    let pipes = Pipes::make()?;
    let target = groups.clone_target().map_err(in_groups)?;
    let outside = Cell::new(Some((
        pipes.release.write,
        pipes.report.read,
        pipes.words.read,
    )));
    let inside = child::Pipes {
        release: pipes.release.read,
        report: pipes.report.write,
        words: pipes.words.write,
    };
    let process = clone_process(
        &surroundings.one_thread,
        namespaces(&plan.omissions),
        target.as_ref().map(OwnedFd::as_fd),
        || {
            // The launcher's ends: if the box held them too, it would not see them close.
            drop(outside.take());
            child::run(plan, inside, &surroundings.filters)
        },
    )
    .map_err(|error| {
        Fault::failed("making the box's namespaces", error)
            .with_fix("run `glovebox doctor` to see what this machine allows")
    })?;
    match outside.take() {
        Some((release, report, words)) => Ok(Running {
            process,
            release,
            report,
            words,
        }),
        None => Err(Fault::failed(
            "making the box's namespaces",
            "no pipes are left",
        )),
    }
}

fn namespaces(omissions: &Omissions) -> i32 {
    [
        (Mutation::ProcessNamespace, libc::CLONE_NEWPID),
        (Mutation::NetworkNamespace, libc::CLONE_NEWNET),
        (Mutation::IpcNamespace, libc::CLONE_NEWIPC),
        (Mutation::UtsNamespace, libc::CLONE_NEWUTS),
    ]
    .into_iter()
    .filter(|(mutation, _)| !omissions.omits(*mutation))
    .fold(
        libc::CLONE_NEWUSER | libc::CLONE_NEWNS,
        |flags, (_, flag)| flags | flag,
    )
}

/// Does for the first process what only the outside can do, lets it go, and waits until it has
/// become the agent. Gives its process id as the host sees it.
fn start(
    running: &Running,
    ids: BoxIds,
    omissions: &Omissions,
    clock: &mut Stages,
) -> Result<i32, Fault> {
    let host_pid = host_pid(&running.process)?;
    write_maps(host_pid, ids, omissions)?;
    clock.mark("maps");
    rustix::io::write(&running.release, b"g")
        .map_err(|error| Fault::failed("releasing the box", error))?;
    let progress = collect(&running.report, SETUP_PATIENCE)
        .map_err(|error| Fault::failed("waiting for the box to set itself up", error))?;
    clock.add(progress.stages_us);
    match progress.failed {
        Some(failed) => Err(explain(failed)),
        None if progress.executed => {
            clock.mark("setup_and_exec");
            Ok(host_pid)
        }
        None => Err(Fault::failed(
            "waiting for the box to set itself up",
            "its first process ended without a word",
        )),
    }
}

/// What the host's `/proc` calls a process of ours. Its numbers are not the pod's, and the
/// description of the descriptor is written for whoever mounted `/proc`.
pub(crate) fn host_pid(process: &Cloned) -> Result<i32, Fault> {
    let doing = "finding the box's first process";
    let path = format!("/proc/self/fdinfo/{}", process.pidfd.as_raw_fd());
    let text = fs_err::read_to_string(path).map_err(|error| Fault::failed(doing, error))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
        .filter(|pid| *pid > 0)
        .ok_or_else(|| Fault::failed(doing, "/proc does not show it"))
}

fn write_maps(host_pid: i32, ids: BoxIds, omissions: &Omissions) -> Result<(), Fault> {
    let write = |file: &str, text: &str| {
        fs_err::write(format!("/proc/{host_pid}/{file}"), text)
            .map_err(|error| Fault::failed("writing the id maps of the box", error))
    };
    if !omissions.omits(Mutation::Setgroups) {
        write("setgroups", "deny")?;
    }
    write("gid_map", &ids.map())?;
    write("uid_map", &ids.map())
}

/// Kills a first process and waits for it; the kernel ends every other process of the box first.
pub(crate) fn end(process: &Cloned) -> Result<(), Fault> {
    let failed = |error: Errno| Fault::failed("ending the box's first process", error);
    match pidfd_send_signal(&process.pidfd, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(error) => return Err(failed(error)),
    }
    wait_for_exit(process)
}

/// Waits for the end of a process that was told to end, or is bound to.
pub(crate) fn wait_for_exit(process: &Cloned) -> Result<(), Fault> {
    let failed = |error: Errno| Fault::failed("waiting for a process to end", error);
    let deadline = Instant::now() + END_PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| failed(Errno::INVAL))?;
        let mut fds = [PollFd::new(&process.pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(failed(Errno::TIMEDOUT)),
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    match waitid(WaitId::PidFd(process.pidfd.as_fd()), WaitIdOptions::EXITED) {
        Ok(_) | Err(Errno::CHILD) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// Measures steps.
struct Stages {
    last: Instant,
    stages: Vec<(String, u64)>,
}

impl Stages {
    fn start() -> Self {
        Self {
            last: Instant::now(),
            stages: Vec::new(),
        }
    }

    fn mark(&mut self, stage: &str) {
        let now = Instant::now();
        let micros = u64::try_from((now - self.last).as_micros()).unwrap_or(u64::MAX);
        self.last = now;
        self.stages.push((stage.into(), micros));
    }

    fn add(&mut self, stages: Vec<(String, u64)>) {
        self.stages.extend(stages);
    }
}
