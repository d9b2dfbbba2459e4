//! The launcher's side of making a box: everything up to the moment at which its first process
//! goes its own way. Nothing here waits for another process.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::PathBuf;
use std::rc::Rc;

use glovebox_protocol::agent_config::Claim;
use glovebox_protocol::ids::{InstallationId, SandboxId};

use super::child::{self, Inside, Plan};
use super::descriptors;
use super::preparation::{Pipes, agents_line, bind_socket, check_layers, config_file};
use super::process::host_pid;
use super::remains::Remains;
use super::stages::Stages;
use crate::cgroup::CgroupError;
use crate::cgroup::group::BoxGroups;
use crate::cgroup::pod::PodGroups;
use crate::control::{BoxKind, Fault};
use crate::fault::chain;
use crate::ids::slots::{BoxIds, Slots};
use crate::mutation::{Mutation, Omissions};
use crate::policy::seccomp::Filters;
use crate::sys::clone::{Cloned, SingleThread, clone_process};
use crate::sys::descriptors::put_out_of_the_way;

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

/// What a box is to be.
#[derive(Debug, Clone)]
pub(crate) struct Design {
    /// What its socket and its control groups are called. The sandbox's id, or in a box that is
    /// made in advance one that no sandbox has.
    pub(crate) name: SandboxId,
    pub(crate) kind: Rc<BoxKind>,
    /// Whose it is, where that is known.
    pub(crate) claim: Option<Claim>,
    pub(crate) omissions: Omissions,
}

/// A box whose first process sets itself up.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) process: Cloned,
    pub(crate) host_pid: i32,
    pub(crate) remains: Remains,
    /// Stays open until the first process has become the agent: it looks whether the launcher
    /// lives.
    pub(crate) release: OwnedFd,
    /// Says how far it is; closes when it has become the agent.
    pub(crate) report: OwnedFd,
    /// What the agent says on its standard error.
    pub(crate) words: OwnedFd,
    /// The line to the agent.
    pub(crate) line: OwnedFd,
    pub(crate) socket: PathBuf,
    pub(crate) ids: BoxIds,
    pub(crate) stages: Stages,
}

/// A box that could not be made, and what there is of it all the same.
#[derive(Debug)]
pub(crate) struct Unmade {
    pub(crate) fault: Fault,
    pub(crate) process: Option<Cloned>,
    pub(crate) remains: Remains,
}

/// Begins a box: its ids, groups and socket, and its first process, which is let go. `spare` are
/// groups for just such a box, where they have been made already.
///
/// # Errors
/// What could not be done, why, and what to do about it; with what has to be taken away again.
pub(crate) fn begin(
    surroundings: &Surroundings,
    slots: &mut Slots,
    design: &Design,
    spare: Option<BoxGroups>,
) -> Result<Begun, Box<Unmade>> {
    let mut remains = Remains {
        groups: spare,
        ..Remains::default()
    };
    match try_begin(surroundings, slots, design, &mut remains) {
        Ok(begun) => Ok(Begun { remains, ..begun }),
        Err((fault, process)) => Err(Box::new(Unmade {
            fault,
            process,
            remains,
        })),
    }
}

type Failed = (Fault, Option<Cloned>);

fn try_begin(
    surroundings: &Surroundings,
    slots: &mut Slots,
    design: &Design,
    remains: &mut Remains,
) -> Result<Begun, Failed> {
    let mut stages = Stages::start();
    let (plan, socket, line, ids) = prepare(surroundings, slots, design, remains, &mut stages)
        .map_err(|fault| (fault, None))?;
    stages.mark("files");
    let running = launch(surroundings, remains, plan).map_err(|fault| (fault, None))?;
    stages.mark("clone");
    match let_go(&running, ids, &design.omissions) {
        Ok(host_pid) => {
            stages.mark("maps");
            // The rest of what remains is put in by whoever called.
            Ok(Begun {
                process: running.process,
                host_pid,
                remains: Remains::default(),
                release: running.release,
                report: running.report,
                words: running.words,
                line,
                socket,
                ids,
                stages,
            })
        }
        Err(fault) => Err((fault, Some(running.process))),
    }
}

/// Makes all that there has to be before the first process is.
fn prepare(
    surroundings: &Surroundings,
    slots: &mut Slots,
    design: &Design,
    remains: &mut Remains,
    stages: &mut Stages,
) -> Result<(Plan, PathBuf, OwnedFd, BoxIds), Fault> {
    let (omissions, name) = (&design.omissions, design.name.to_string());
    let layers = check_layers(&design.kind.layers)?;
    let ids = take_ids(slots, remains, omissions)?;
    let groups = match &mut remains.groups {
        Some(groups) => groups,
        none => none.insert(
            BoxGroups::make(
                &surroundings.pod,
                &name,
                &design.kind.limits,
                surroundings.host_cpus,
                omissions,
            )
            .map_err(in_groups)?,
        ),
    };
    stages.mark("cgroups");
    let (socket, listener) = bind_socket(surroundings, &name)?;
    remains.socket = Some(name);
    let doors = if omissions.omits(Mutation::WorkCgroup) {
        Vec::new()
    } else {
        groups.work_doors(ids.pod.agent).map_err(in_groups)?
    };
    let oom_events = groups.oom_events().map_err(in_groups)?.map(OwnedFd::from);
    let (line, agents_line) = agents_line()?;
    let line = put_out_of_the_way(line);
    let numbers = descriptors::numbers(doors.len(), oom_events.is_some());
    let plan = Plan {
        ids: ids.inside,
        limits: design.kind.limits.clone(),
        layers,
        own_doors: groups.agent_doors().map_err(in_groups)?,
        config: config_file(design, ids.inside, numbers)?,
        listener,
        line: agents_line,
        oom_events,
        doors,
        omissions: omissions.clone(),
    };
    Ok((plan, socket, line, ids))
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

fn in_groups(error: CgroupError) -> Fault {
    Fault::failed("making the box's control groups", chain(&error))
}

/// A first process that waits to be let go.
struct Running {
    process: Cloned,
    release: OwnedFd,
    report: OwnedFd,
    words: OwnedFd,
}

fn launch(
    surroundings: &Surroundings,
    remains: &mut Remains,
    plan: Plan,
) -> Result<Running, Fault> {
    let doing = "making the box's namespaces";
    let pipes = Pipes::make()?;
    let target = match &remains.groups {
        Some(groups) => groups.clone_target().map_err(in_groups)?,
        None => None,
    };
    let (release, report, words) = (pipes.release, pipes.report, pipes.words);
    let outside = [release.write, report.read, words.read].map(put_out_of_the_way);
    let namespaces = namespaces(&plan.omissions);
    remains.inside = Some(Inside {
        plan,
        pipes: child::Pipes {
            release: release.read,
            report: report.write,
            words: words.write,
        },
    });
    let Cloned { pid, pidfd } = clone_process(
        &surroundings.one_thread,
        namespaces | libc::CLONE_FILES,
        target.as_ref().map(OwnedFd::as_fd),
        || {
            // In a copy of this memory: for the launcher it stays where it is.
            let inside = remains.inside.take();
            inside.map_or(1, |inside| child::run(inside, &surroundings.filters))
        },
    )
    .map_err(|error| {
        Fault::failed(doing, error)
            .with_fix("run `glovebox doctor` to see what this machine allows")
    })?;
    let [release, report, words] = outside;
    Ok(Running {
        process: Cloned {
            pid,
            pidfd: put_out_of_the_way(pidfd),
        },
        release,
        report,
        words,
    })
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

/// Does for the first process what only the outside can do, and lets it go. Gives its process id
/// as the host sees it.
fn let_go(running: &Running, ids: BoxIds, omissions: &Omissions) -> Result<i32, Fault> {
    let host_pid = host_pid(&running.process)?;
    write_maps(host_pid, ids, omissions)?;
    rustix::io::write(&running.release, b"g")
        .map_err(|error| Fault::failed("releasing the box", error))?;
    Ok(host_pid)
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
