//! Trying, in the launcher, what a box needs: in a throwaway process, one thing after the other.

use std::cell::Cell;
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::limits::Limits;
use rustix::fs::{Gid, Uid};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::pipe::{PipeFlags, pipe_with};
use serde::{Deserialize, Serialize};

use crate::cgroup::CgroupError;
use crate::cgroup::group::BoxGroups;
use crate::cgroup::layout::Layout;
use crate::cgroup::pod::{Missing, PodGroups};
use crate::control::Fault;
use crate::create::mounts::cut_off;
use crate::create::process::{host_pid, wait_for_exit};
use crate::fault::chain;
use crate::ids::pod::PodIds;
use crate::launcher::machine::Machine;
use crate::launcher::outer::pod_owner;
use crate::mutation::Omissions;
use crate::policy::landlock::restrict_workload;
use crate::policy::seccomp::Filters;
use crate::sys::clone::{SingleThread, clone_process};
use crate::weakness::Weakness;

/// Something that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Namespaces of all kinds, and taking the pod's ids in them.
    Namespaces,
    /// Changing mounts in them.
    Mounts,
    /// Making the control groups of a box, and starting a process in one.
    Groups,
    /// A file system in memory with limits.
    Tmpfs,
    /// An overlay of folders.
    Overlay,
    /// A `/proc` that shows processes of the box only.
    Proc,
    /// Landlock rules.
    Landlock,
    /// A filter of system calls.
    Seccomp,
}

impl What {
    /// All of them, in the order in which they are tried.
    const ALL: [Self; 8] = [
        Self::Namespaces,
        Self::Mounts,
        Self::Groups,
        Self::Tmpfs,
        Self::Overlay,
        Self::Proc,
        Self::Landlock,
        Self::Seccomp,
    ];
}

/// How one trial went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// What was tried.
    pub what: What,
    /// Why it failed; `None` when it worked.
    pub error: Option<String>,
}

/// How making control groups went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTrial {
    /// 1 or 2; 0 where none are mounted.
    pub version: u8,
    /// What could not be had, and why.
    pub missing: Vec<(Weakness, String)>,
}

/// What was found by trying.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trials {
    /// The user who tried.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
    /// The kernel's release.
    pub kernel: String,
    /// The version of Landlock; 0 for none.
    pub landlock_abi: u32,
    /// Whether agent and workload can have ids of their own.
    pub two_ids: bool,
    /// Why the pod's ids could not be chosen.
    pub ids_fault: Option<String>,
    /// Control groups.
    pub groups: GroupTrial,
    /// The steps of a box. What comes after a failure that makes it pointless is left out.
    pub steps: Vec<Trial>,
}

/// Runs with the launcher's arguments behind `--try`, and prints what was found as JSON.
pub(crate) fn run(mut arguments: impl Iterator<Item = OsString>) -> std::process::ExitCode {
    use std::io::Write as _;
    let start = arguments
        .next()
        .and_then(|start| start.to_str()?.parse().ok())
        .unwrap_or(crate::control::DEFAULT_ROOT_RANGE_START);
    let data = arguments.next().map(PathBuf::from);
    let trials = try_all(start, data.as_deref());
    let written = serde_json::to_vec(&trials)
        .map_err(std::io::Error::from)
        .and_then(|text| std::io::stdout().write_all(&text));
    match written {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(_) => std::process::ExitCode::FAILURE,
    }
}

fn try_all(root_range_start: u32, data: Option<&Path>) -> Trials {
    let machine = Machine::ask();
    let ids = PodIds::decide(root_range_start);
    let owner = ids.as_ref().ok().and_then(|ids| pod_owner(ids).ok());
    let (groups, pod) = try_groups(owner.flatten());
    let mut trials = Trials {
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        kernel: machine.kernel,
        landlock_abi: machine.landlock_abi,
        two_ids: ids.as_ref().is_ok_and(PodIds::has_range),
        ids_fault: None,
        groups,
        steps: Vec::new(),
    };
    match ids {
        Ok(ids) => {
            trials.steps = try_steps(&ids, data, &pod).unwrap_or_else(|fault| {
                vec![Trial {
                    what: What::Namespaces,
                    error: Some(fault.to_string()),
                }]
            });
        }
        Err(fault) => trials.ids_fault = Some(fault.cause),
    }
    let entered = trials.steps.iter().find(|trial| trial.what == What::Groups);
    if let Some(error) = entered.and_then(|trial| trial.error.as_ref()) {
        let cause = format!("no process can be started in a control group of a box: {error}");
        trials.groups.missing.extend(named(Missing::all(&cause)));
    }
    if let Err(error) = pod.remove() {
        let cause = format!("they cannot be taken away again: {}", chain(&error));
        trials.groups.missing.extend(named(Missing::all(&cause)));
    }
    trials
}

/// Makes the groups of a pod, which are to be taken away again.
fn try_groups(owner: Option<(Uid, Gid)>) -> (GroupTrial, PodGroups) {
    let nothing = |cause: &str| {
        let trial = GroupTrial {
            version: 0,
            missing: named(Missing::all(cause)),
        };
        (trial, PodGroups::none())
    };
    let layout = match Layout::of_this_machine(rustix::process::geteuid().as_raw()) {
        Ok(Some(layout)) => layout,
        Ok(None) => return nothing("no control groups are mounted"),
        Err(error) => return nothing(&error.to_string()),
    };
    let name = format!("try-{}", std::process::id());
    let (pod, missing) = PodGroups::make(&layout, &name, owner);
    let trial = GroupTrial {
        version: layout.version.number(),
        missing: named(missing),
    };
    (trial, pod)
}

fn named(missing: Vec<Missing>) -> Vec<(Weakness, String)> {
    missing
        .into_iter()
        .map(|missing| (missing.weakness, missing.cause))
        .collect()
}

/// Clones the throwaway process and collects what it found.
fn try_steps(ids: &PodIds, data: Option<&Path>, pod: &PodGroups) -> Result<Vec<Trial>, Fault> {
    let doing = "making a throwaway process in namespaces of its own";
    let own_group = pod
        .launcher()
        .map_err(|error| Fault::failed(doing, chain(&error)))?;
    let failed = |error: Errno| Fault::failed(doing, error);
    let one_thread = SingleThread::verify().map_err(|error| Fault::failed(doing, error))?;
    let (release_in, release_out) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    let (found_out, found_in) = pipe_with(PipeFlags::CLOEXEC).map_err(failed)?;
    // As the launcher does it: by walking there before the clone, and naming it relatively.
    let over_data = data.is_some_and(|data| rustix::process::chdir(data).is_ok());
    let outside = Cell::new(Some((release_out, found_out)));
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS;
    let own_group = own_group.as_ref().map(AsFd::as_fd);
    let process = clone_process(&one_thread, flags, own_group, || {
        drop(outside.take());
        try_inside(&release_in, &found_in, over_data, || {
            enter_group(pod, &one_thread)
        })
    })
    .map_err(|error| Fault::failed(doing, error))?;
    drop(found_in);
    let Some((release, found)) = outside.take() else {
        return Err(failed(Errno::PIPE));
    };
    let mapped = host_pid(&process).and_then(|pid| ids.write_maps(pid));
    if mapped.is_ok() {
        rustix::io::write(&release, b"g").map_err(failed)?;
    }
    drop(release);
    let mut codes = Vec::new();
    std::io::Read::read_to_end(&mut std::fs::File::from(found), &mut codes)
        .map_err(|error| Fault::failed(doing, error))?;
    wait_for_exit(&process)?;
    mapped?;
    Ok(What::ALL
        .into_iter()
        .zip(codes)
        .map(|(what, code)| Trial {
            what,
            error: (code != 0).then(|| Errno::from_raw_os_error(i32::from(code)).to_string()),
        })
        .collect())
}

/// Writes one byte per trial: 0, or the kernel's error number.
fn try_inside(
    release: &OwnedFd,
    found: &OwnedFd,
    over_data: bool,
    enter_group: impl FnOnce() -> Result<(), Errno>,
) -> i32 {
    let mut byte = [0];
    if !matches!(rustix::io::read(release, &mut byte), Ok(1)) {
        return 1;
    }
    let tell = |result: Result<(), Errno>| {
        let code = result.err().map_or(0, Errno::raw_os_error);
        let code = u8::try_from(code).unwrap_or(u8::MAX);
        // If nobody listens any more there is nothing to do.
        let _ = rustix::io::write(found, &[code]);
        result.is_ok()
    };
    // Without ids and the right to mount, nothing else can be tried.
    if !tell(crate::launcher::inner::become_first_id()) || !tell(cut_off()) {
        return 0;
    }
    // Before the steps after which files of the host cannot be written any more.
    tell(enter_group());
    let tmpfs = mount(
        c"glovebox",
        c"/tmp",
        c"tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        c"size=1m,nr_inodes=64,mode=755",
    );
    if tell(tmpfs) {
        tell(overlay(over_data));
    } else {
        tell(Err(Errno::CANCELED));
    }
    tell(mount(
        c"proc",
        c"/proc",
        c"proc",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        c"hidepid=invisible,subset=pid",
    ));
    tell(restrict_workload().map_err(|_| Errno::OPNOTSUPP));
    let filters = Filters::workload(false)
        .and_then(|filters| filters.load_answers(&Omissions::of_this_program()));
    tell(filters.map_err(|_| Errno::INVAL));
    0
}

/// Makes groups as for a box, and starts a process in them. They are taken away with the pod's.
fn enter_group(pod: &PodGroups, one_thread: &SingleThread) -> Result<(), Errno> {
    let in_groups = |error: CgroupError| match error {
        CgroupError::File { source, .. } => Errno::from_io_error(&source).unwrap_or(Errno::IO),
        _ => Errno::BUSY,
    };
    let limits = Limits::of(ResourceClass::Small);
    let groups =
        BoxGroups::make(pod, "box", &limits, 1, &Omissions::default()).map_err(in_groups)?;
    let group = groups.clone_target().map_err(in_groups)?;
    let group = group.as_ref().map(AsFd::as_fd);
    let process = clone_process(one_thread, 0, group, || 0)
        .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    wait_for_exit(&process).map_err(|_| Errno::TIMEDOUT)
}

/// An overlay over the working folder, if that is the data folder: not every file system can be
/// a layer.
fn overlay(over_data: bool) -> Result<(), Errno> {
    for folder in ["/tmp/upper", "/tmp/lower", "/tmp/root"] {
        rustix::fs::mkdir(folder, rustix::fs::Mode::from_raw_mode(0o755))?;
    }
    let options = if over_data {
        c"lowerdir=/tmp/upper:.,userxattr"
    } else {
        c"lowerdir=/tmp/upper:/tmp/lower,userxattr"
    };
    mount(
        c"glovebox",
        c"/tmp/root",
        c"overlay",
        MountFlags::RDONLY,
        options,
    )
}
