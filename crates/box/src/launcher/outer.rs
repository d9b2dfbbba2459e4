//! The launcher's outer process: prepares what needs the rights of whoever started it, hands over
//! to the inner one, waits for its end, and takes away the pod's folders.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Gid, Mode, Uid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::WaitIdOptions;

use super::inner::{self, Inheritance};
use super::line::Line;
use super::machine::Machine;
use super::run_folder::RunFolder;
use crate::cgroup::layout::Layout;
use crate::cgroup::pod::{Missing, PodGroups, sweep};
use crate::control::{Fault, FromLauncher, LauncherConfig, PodFacts};
use crate::create::mounts::MOUNT_POINT;
use crate::create::process::{end, wait_for_exit};
use crate::fault::chain;
use crate::ids::pod::PodIds;
use crate::ids::slots::{self, Slots};
use crate::mutation::Omissions;
use crate::sys;
use crate::sys::clone::{Cloned, SingleThread, clone_process};
use crate::weakness::Weakness;

/// Runs until the control socket is closed and everything is cleaned up.
pub(super) fn run() -> ExitCode {
    let Ok(mut line) = sys::descriptors::inherited(0).and_then(Line::new) else {
        say("the standard input is no socket of a runtime");
        return ExitCode::FAILURE;
    };
    match serve(&mut line) {
        Ok(code) => code,
        Err(fault) => {
            say(&fault);
            // If the runtime is gone, there is nobody to tell.
            let _ = line.send(&FromLauncher::Failed { id: 0, fault });
            ExitCode::FAILURE
        }
    }
}

/// Writes to the standard error, for whoever keeps it.
pub(super) fn say(what: impl std::fmt::Display) {
    use std::io::Write as _;
    // There is no other place for it.
    let _ = writeln!(std::io::stderr(), "glovebox-launcher: {what}");
}

fn serve(line: &mut Line) -> Result<ExitCode, Fault> {
    let doing = "starting the launcher";
    let failed = |error: std::io::Error| Fault::failed(doing, error);
    let text = line
        .wait_for_line()
        .map_err(failed)?
        .ok_or_else(|| Fault::failed(doing, "the runtime closed the line before it spoke"))?;
    let config: LauncherConfig =
        serde_json::from_slice(&text).map_err(|error| Fault::invalid(doing, error))?;
    // A key typed at the terminal is for the command, not for us.
    rustix::process::setsid()
        .map(drop)
        .or_else(|error| {
            if error == Errno::PERM {
                Ok(())
            } else {
                Err(error)
            }
        })
        .map_err(|error| failed(error.into()))?;
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let signals = sys::signals::ending_signals().map_err(failed)?;
    let one_thread = SingleThread::verify().map_err(failed)?;
    let prepared = prepare(&config)?;
    let lifeline = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    hand_over(line, &one_thread, &prepared, lifeline, &signals)
}

/// What was prepared with the rights of the outer process.
struct Prepared {
    config: LauncherConfig,
    ids: PodIds,
    facts: PodFacts,
    pod: Rc<PodGroups>,
    run_folder: RunFolder,
    /// Where the next runtime comes in, where there is to be one.
    door: Option<OwnedFd>,
    slots: OwnedFd,
    host_cpus: u32,
}

impl Prepared {
    /// What the inner process gets of it.
    fn inheritance(&self, lifeline: OwnedFd) -> std::io::Result<Inheritance> {
        Ok(Inheritance {
            facts: self.facts.clone(),
            ids: self.ids.clone(),
            config: self.config.clone(),
            run: self.run_folder.path().to_owned(),
            run_folder: self.run_folder.open()?,
            pod: Rc::clone(&self.pod),
            slots: Slots::new(self.slots.try_clone()?, self.ids.last()),
            host_cpus: self.host_cpus,
            omissions: Omissions::of_this_program(),
            door: self.door.as_ref().map(OwnedFd::try_clone).transpose()?,
            lifeline,
        })
    }
}

fn prepare(config: &LauncherConfig) -> Result<Prepared, Fault> {
    for path in [&config.data, &config.run] {
        if !path.is_absolute() {
            return Err(Fault::invalid(
                "reading the launcher's configuration",
                format!("{} is no absolute path", path.display()),
            ));
        }
    }
    let machine = Machine::ask();
    let ids = PodIds::decide(config.root_range_start)?;
    let owner = pod_owner(&ids)?;
    let run_folder = RunFolder::take(&config.run, owner)?;
    let prepared = prepare_rest(config, &ids, owner, &machine);
    let prepared = prepared.and_then(|(slots, pod, facts)| match door(config, &run_folder) {
        Ok(door) => Ok((slots, pod, facts, door)),
        Err(fault) => Err(fault.and_then(pod.remove().map_err(|error| {
            Fault::failed("removing the control groups of the pod", chain(&error))
        }))),
    });
    match prepared {
        Ok((slots, pod, facts, door)) => Ok(Prepared {
            config: config.clone(),
            ids,
            facts,
            pod: Rc::new(pod),
            run_folder,
            door,
            slots,
            host_cpus: machine.cpus,
        }),
        Err(fault) => {
            // It is empty; if it stays, the next launcher sweeps it.
            let _ = run_folder.leave();
            Err(fault)
        }
    }
}

fn door(config: &LauncherConfig, run_folder: &RunFolder) -> Result<Option<OwnedFd>, Fault> {
    config.stays.then(|| run_folder.open_door()).transpose()
}

fn prepare_rest(
    config: &LauncherConfig,
    ids: &PodIds,
    owner: Option<(Uid, Gid)>,
    machine: &Machine,
) -> Result<(OwnedFd, PodGroups, PodFacts), Fault> {
    let slots = slots::open_file(ids.host_user(1).unwrap_or(0))?;
    enter_data(&config.data)?;
    let (pod, missing) = make_groups(config, owner)?;
    let weaker = accept(config, machine, missing).inspect_err(|_| {
        // The same.
        let _ = pod.remove();
    })?;
    let facts = PodFacts {
        two_ids: ids.has_range(),
        cgroup_version: if pod.trees.is_empty() {
            0
        } else {
            pod.version.number()
        },
        landlock_abi: machine.landlock_abi,
        weaker,
    };
    Ok((slots, pod, facts))
}

/// As root, the host ids of the pod's first id; an ordinary user is that id already.
pub(crate) fn pod_owner(ids: &PodIds) -> Result<Option<(Uid, Gid)>, Fault> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    match (ids.host_user(0), ids.host_group(0)) {
        (Some(uid), Some(gid)) => Ok(Some((Uid::from_raw(uid), Gid::from_raw(gid)))),
        _ => Err(Fault::failed(
            "choosing host ids for the pod",
            "it has none",
        )),
    }
}

/// Makes the data folder the working folder, and makes in it the folder on which every box mounts
/// its root.
///
/// Boxes name their layers relative to it. The working folder is what the kernel carries over
/// into each new mount namespace; a descriptor would go on meaning the host's mount. And the
/// pod's ids need no right to walk to it.
fn enter_data(path: &Path) -> Result<(), Fault> {
    let doing = || format!("entering the data folder {}", path.display());
    let failed = |error: Errno| {
        Fault::failed(doing(), error).with_fix("set Glovebox up, or choose another data folder")
    };
    rustix::process::chdir(path).map_err(failed)?;
    match rustix::fs::mkdir(MOUNT_POINT, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn make_groups(
    config: &LauncherConfig,
    owner: Option<(Uid, Gid)>,
) -> Result<(PodGroups, Vec<Missing>), Fault> {
    let uid = rustix::process::geteuid().as_raw();
    let layout = Layout::of_this_machine(uid)
        .map_err(|error| Fault::failed("looking for control groups", error))?;
    let Some(layout) = layout else {
        return Ok((
            PodGroups::none(),
            Missing::all("no control groups are mounted"),
        ));
    };
    if let Err(error) = sweep(&layout) {
        // What stays harms no box of ours, and is tried again by the next launcher.
        say(format_args!(
            "control groups of a launcher that is gone are left: {}",
            chain(&error)
        ));
    }
    let name = config
        .run
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let name = format!("{}-{}", std::process::id(), name);
    Ok(PodGroups::make(&layout, &name, owner))
}

/// What is missing and was accepted; a fault for the first that was not.
fn accept(
    config: &LauncherConfig,
    machine: &Machine,
    missing: Vec<Missing>,
) -> Result<Vec<Weakness>, Fault> {
    let machine = machine
        .missing()
        .into_iter()
        .map(|(weakness, cause)| Missing { weakness, cause });
    let mut weaker = Vec::new();
    for Missing { weakness, cause } in machine.chain(missing) {
        if !config.accept_weaker.contains(&weakness) {
            return Err(Fault::weaker(weakness, cause));
        }
        weaker.push(weakness);
    }
    weaker.sort_unstable();
    weaker.dedup();
    Ok(weaker)
}

/// Runs the pod, and takes its folders away, whatever came of it.
fn hand_over(
    line: &mut Line,
    one_thread: &SingleThread,
    prepared: &Prepared,
    lifeline: (OwnedFd, OwnedFd),
    signals: &OwnedFd,
) -> Result<ExitCode, Fault> {
    let ran = run_pod(line, one_thread, prepared, lifeline, signals);
    let cleaned = clean(&prepared.pod, &prepared.run_folder);
    match (ran, cleaned) {
        (Ok(Some(0)), Ok(())) => Ok(ExitCode::SUCCESS),
        (Ok(_), Ok(())) => Ok(ExitCode::FAILURE),
        (Ok(_), Err(fault)) => Err(fault),
        (Err(fault), cleaned) => Err(fault.and_then(cleaned)),
    }
}

/// Clones the inner process and waits for its end. It has ended whenever this comes back.
fn run_pod(
    line: &mut Line,
    one_thread: &SingleThread,
    prepared: &Prepared,
    (lifeline_inside, lifeline_outside): (OwnedFd, OwnedFd),
    signals: &OwnedFd,
) -> Result<Option<i32>, Fault> {
    let failed = |error: std::io::Error| Fault::failed("making the pod", error);
    let outside = Cell::new(Some(lifeline_outside));
    let inheritance = prepared.inheritance(lifeline_inside).map_err(failed)?;
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID;
    let group = prepared
        .pod
        .launcher()
        .map_err(|error| Fault::failed("making the pod", chain(&error)))?;
    let group = group.as_ref().map(AsFd::as_fd);
    let inner = clone_process(one_thread, flags, group, || {
        // The inner process would not see the outer one's end of the pipe close.
        drop(outside.take());
        inner::run(line, inheritance)
    })
    .map_err(namespaces_refused)?;
    let release = outside
        .take()
        .ok_or_else(|| Fault::failed("making the pod", "no pipe is left"))?;
    if let Err(fault) = let_go(&prepared.ids, &inner, &release) {
        // It sees the pipe close, and ends.
        drop(release);
        return Err(fault.and_then(wait_for_exit(&inner)));
    }
    line.let_go();
    wait(&inner, signals, release).map_err(|fault| fault.and_then(end(&inner)))
}

/// The kernel's word for it says neither what was refused nor what to do.
fn namespaces_refused(error: std::io::Error) -> Fault {
    let forbidden = matches!(
        Errno::from_io_error(&error),
        Some(
            Errno::PERM | Errno::NOSPC | Errno::NOSYS | Errno::USERS | Errno::INVAL | Errno::ACCESS
        )
    );
    let fault = Fault::failed("making the pod's user namespace", &error);
    if forbidden {
        fault.with_fix(
            "user namespaces are forbidden or used up on this machine: look at the settings kernel.unprivileged_userns_clone (1), user.max_user_namespaces (not 0) and kernel.apparmor_restrict_unprivileged_userns (0, or a profile for the launcher); `glovebox doctor` says which it is",
        )
    } else {
        fault.with_fix("run `glovebox doctor` to see what this machine allows")
    }
}

fn let_go(ids: &PodIds, inner: &Cloned, release: &OwnedFd) -> Result<(), Fault> {
    ids.write_maps(inner.pid.as_raw_nonzero().get())?;
    rustix::io::write(release, b"g")
        .map(drop)
        .map_err(|error| Fault::failed("releasing the pod", error))
}

/// Waits for the inner process. A signal that asks us to end is passed on by closing the line
/// between the two, upon which the inner process ends in good order.
fn wait(inner: &Cloned, signals: &OwnedFd, release: OwnedFd) -> Result<Option<i32>, Fault> {
    let failed = |error: Errno| Fault::failed("waiting for the pod", error);
    let mut release = Some(release);
    loop {
        let mut fds = vec![PollFd::new(&inner.pidfd, PollFlags::IN)];
        if release.is_some() {
            fds.push(PollFd::new(signals, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        if fds.get(1).is_some_and(|fd| !fd.revents().is_empty()) {
            release = None;
        }
        if !fds[0].revents().is_empty() {
            break;
        }
    }
    let status = rustix::process::waitid(
        rustix::process::WaitId::PidFd(std::os::fd::AsFd::as_fd(&inner.pidfd)),
        WaitIdOptions::EXITED,
    )
    .map_err(failed)?;
    Ok(status.and_then(|status| status.exit_status()))
}

fn clean(pod: &PodGroups, run_folder: &RunFolder) -> Result<(), Fault> {
    let groups = pod
        .remove()
        .map_err(|error| Fault::failed("removing the control groups of the pod", chain(&error)));
    groups.and(run_folder.leave())
}
