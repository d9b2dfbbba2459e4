//! The group of one launcher, below which its boxes have theirs, and the sweep of groups whose
//! launcher is gone.
//!
//! Every pod's folder is locked by its launcher for as long as that lives, so that a folder that
//! can be locked is a leftover. The kernel ends the lock with the process, however it ends.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Gid, Mode, OFlags, Uid, flock};
use rustix::io::Errno;

use super::clear::remove;
use super::group::open_folder;
use super::layout::{Controller, Layout, SUPERVISOR, Tree, Version};
use super::{CgroupError, files, on};
use crate::fault::chain;
use crate::weakness::Weakness;

/// How long a leftover pod is given to become empty and go away.
const SWEEP_PATIENCE: Duration = Duration::from_secs(5);

/// The launcher's own leaf in its pod, on version 2: a process is only moved, or cloned, from a
/// group into another by whoever may write to the group that both are below. So what makes the
/// boxes of a pod has to be in the pod itself.
const LAUNCHER: &str = "launcher";

/// Why an ordinary user has no place for control groups of version 2.
const NO_SCOPE: &str = "this process is in no scope that the user's systemd has made for it, and the control groups of other processes are left alone";

/// The groups of one pod.
#[derive(Debug)]
pub(crate) struct PodGroups {
    pub(crate) version: Version,
    pub(crate) trees: Vec<PodTree>,
}

/// A pod's folder in one hierarchy.
#[derive(Debug)]
pub(crate) struct PodTree {
    pub(crate) folder: PathBuf,
    pub(crate) controllers: Vec<Controller>,
    /// Held for as long as the pod lives.
    _lock: File,
}

/// A protection that the groups cannot give, and why.
#[derive(Debug)]
pub(crate) struct Missing {
    pub(crate) weakness: Weakness,
    pub(crate) cause: String,
}

impl Missing {
    /// Every limit, for one reason.
    pub(crate) fn all(cause: &str) -> Vec<Self> {
        [
            Weakness::MemoryLimit,
            Weakness::SwapLimit,
            Weakness::CpuLimit,
            Weakness::ProcessLimit,
        ]
        .map(|weakness| Self {
            weakness,
            cause: cause.to_owned(),
        })
        .into()
    }
}

impl PodGroups {
    /// No groups at all.
    pub(crate) const fn none() -> Self {
        Self {
            version: Version::Two,
            trees: Vec::new(),
        }
    }

    /// Makes the folder `name` in every tree and gives it to `owner`. What could not be made is
    /// returned beside it.
    pub(crate) fn make(
        layout: &Layout,
        name: &str,
        owner: Option<(Uid, Gid)>,
    ) -> (Self, Vec<Missing>) {
        let mut pod = Self {
            version: layout.version,
            trees: Vec::new(),
        };
        let mut causes = BTreeMap::new();
        if layout.trees.is_empty() {
            causes.extend(Controller::LIMITING.map(|controller| (controller, NO_SCOPE.to_owned())));
        }
        for tree in &layout.trees {
            match make_tree(layout.version, tree, name, owner) {
                Ok(made) => pod.trees.push(made),
                Err(error) => {
                    let cause = chain(&error);
                    causes.extend(tree.controllers.iter().map(|c| (*c, cause.clone())));
                }
            }
        }
        let missing = pod.missing(&causes);
        (pod, missing)
    }

    /// Memory that everything in the pod uses, in bytes, without what the kernel has only cached
    /// of files and gives back when it is needed. Nothing where memory is not counted.
    pub(crate) fn memory_bytes(&self) -> Option<u64> {
        let mut trees = self.trees.iter();
        let tree = trees.find(|tree| tree.controllers.contains(&Controller::Memory))?;
        let (usage, cached) = match self.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file "),
            Version::Two => ("memory.current", "inactive_file "),
        };
        let read = |name: &str| files::read(&tree.folder.join(name)).ok();
        let usage: u64 = read(usage)?.trim().parse().ok()?;
        let stat = read("memory.stat")?;
        let cached = stat.lines().find_map(|line| line.strip_prefix(cached));
        let cached = cached.and_then(|bytes| bytes.trim().parse().ok());
        Some(usage.saturating_sub(cached.unwrap_or(0)))
    }

    /// Every limit that these groups cannot set; `causes` says why a controller has no group.
    fn missing(&self, causes: &BTreeMap<Controller, String>) -> Vec<Missing> {
        let mut missing = Vec::new();
        for controller in Controller::LIMITING {
            let mut trees = self.trees.iter();
            let Some(tree) = trees.find(|tree| tree.controllers.contains(&controller)) else {
                let cause = causes.get(&controller).cloned().unwrap_or_else(|| {
                    format!("the controller `{}` is not there", controller.name())
                });
                let lost = limits_of(controller).iter().map(|weakness| Missing {
                    weakness: *weakness,
                    cause: cause.clone(),
                });
                missing.extend(lost);
                continue;
            };
            let swap = match self.version {
                Version::One => "memory.memsw.limit_in_bytes",
                Version::Two => "memory.swap.max",
            };
            if controller == Controller::Memory && !tree.folder.join(swap).exists() {
                missing.push(Missing {
                    weakness: Weakness::SwapLimit,
                    cause: format!("the kernel has no {swap}: swap is not accounted for"),
                });
            }
        }
        missing
    }

    /// On version 2, the leaf of the process that makes the pod's boxes as a descriptor, into
    /// which it is to be cloned.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(crate) fn launcher(&self) -> Result<Option<OwnedFd>, CgroupError> {
        match (self.version, self.trees.first()) {
            (Version::Two, Some(tree)) => {
                open_folder(&tree.folder.join(LAUNCHER), OFlags::RDONLY).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Removes the folders. Nothing may be left in them.
    ///
    /// # Errors
    /// The first failure; the others are tried all the same.
    pub(crate) fn remove(&self) -> Result<(), CgroupError> {
        let results: Vec<_> = self
            .trees
            .iter()
            .map(|tree| clear(self.version, &tree.folder))
            .collect();
        results.into_iter().collect()
    }
}

/// What goes without a controller.
const fn limits_of(controller: Controller) -> &'static [Weakness] {
    match controller {
        Controller::Memory => &[Weakness::MemoryLimit, Weakness::SwapLimit],
        Controller::Pids => &[Weakness::ProcessLimit],
        Controller::Cpu => &[Weakness::CpuLimit],
        Controller::Freezer => &[],
    }
}

/// Removes what launchers that are gone have left behind, processes included.
///
/// # Errors
/// The first failure; everything else is swept all the same.
pub(crate) fn sweep(layout: &Layout) -> Result<(), CgroupError> {
    let mut result = Ok(());
    for tree in &layout.trees {
        let Ok(entries) = fs_err::read_dir(&tree.base) else {
            continue;
        };
        for entry in entries.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            let swept = sweep_one(layout.version, &entry.path());
            result = result.and(swept);
        }
    }
    result
}

fn sweep_one(version: Version, folder: &Path) -> Result<(), CgroupError> {
    match lock_folder(folder, FlockOperation::NonBlockingLockExclusive) {
        Ok(Some(_lock)) => clear(version, folder),
        Ok(None) => Ok(()),
        Err(CgroupError::File { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Kills what is in a pod's folder and removes it with its boxes.
fn clear(version: Version, folder: &Path) -> Result<(), CgroupError> {
    let Ok(boxes) = fs_err::read_dir(folder) else {
        return Ok(());
    };
    let deadline = Instant::now() + SWEEP_PATIENCE;
    for entry in boxes.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        remove(version, &entry.path(), deadline)?;
    }
    remove(version, folder, deadline)
}

fn make_tree(
    version: Version,
    tree: &Tree,
    name: &str,
    owner: Option<(Uid, Gid)>,
) -> Result<PodTree, CgroupError> {
    let parent = tree.base.parent().unwrap_or(&tree.mount);
    let controllers = usable(version, tree, parent)?;
    if version == Version::Two {
        open_up(parent, parent != tree.mount, &controllers)?;
    }
    match files::make_folder(&tree.base) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(on("making the control group", &tree.base)(error));
        }
        _ => {}
    }
    let folder = tree.base.join(name);
    let lock = make_locked(&folder)?;
    let made = fill(version, &tree.base, &folder, &controllers, owner);
    if let Err(error) = made {
        // Nothing is in it; if it stays, the next launcher sweeps it.
        let _ = clear(version, &folder);
        return Err(error);
    }
    Ok(PodTree {
        folder,
        controllers,
        _lock: lock,
    })
}

/// The controllers of a tree that can be had: on version 2, those that were passed on to us.
fn usable(version: Version, tree: &Tree, parent: &Path) -> Result<Vec<Controller>, CgroupError> {
    let wanted = tree.controllers.iter().copied();
    if version == Version::One {
        return Ok(wanted.collect());
    }
    let file = parent.join("cgroup.controllers");
    let there = files::read(&file).map_err(on("reading", &file))?;
    let there: Vec<_> = there.split_ascii_whitespace().collect();
    Ok(wanted
        .filter(|controller| there.contains(&controller.name()))
        .collect())
}

/// Gives the pod's folder its controllers and its owner.
fn fill(
    version: Version,
    base: &Path,
    folder: &Path,
    controllers: &[Controller],
    owner: Option<(Uid, Gid)>,
) -> Result<(), CgroupError> {
    if version == Version::Two {
        enable(base, controllers)?;
        enable(folder, controllers)?;
        let leaf = folder.join(LAUNCHER);
        files::make_folder(&leaf).map_err(on("making the control group", &leaf))?;
    }
    let Some((uid, gid)) = owner else {
        return Ok(());
    };
    // The folder and what moves processes into it and spreads controllers below it; the files
    // that limit the pod itself stay the host's.
    for file in [
        "",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.threads",
    ] {
        let path = folder.join(file);
        if file.is_empty() || path.exists() {
            rustix::fs::chown(&path, Some(uid), Some(gid))
                .map_err(|error| on("giving the pod", &path)(error.into()))?;
        }
    }
    Ok(())
}

/// Lets the groups below the parent of all pods have controllers, which the processes of a scope
/// have to make room for. One that is born there between the two is moved in the next attempt.
fn open_up(parent: &Path, is_scope: bool, controllers: &[Controller]) -> Result<(), CgroupError> {
    for _ in 1..MAKE_ATTEMPTS {
        if is_scope {
            make_room(parent)?;
        }
        match enable(parent, controllers) {
            Err(CgroupError::File { source, .. })
                if is_scope && Errno::from_io_error(&source) == Some(Errno::BUSY) => {}
            other => return other,
        }
    }
    enable(parent, controllers)
}

/// On version 2 a group with controllers below may hold no process itself: moves those of our
/// scope, this process among them, into a leaf. Nothing but us is in it, see
/// [`super::layout::own_scope`].
fn make_room(group: &Path) -> Result<(), CgroupError> {
    let leaf = group.join(SUPERVISOR);
    if !leaf.exists() {
        files::make_folder(&leaf).map_err(on("making the control group", &leaf))?;
    }
    let procs = group.join("cgroup.procs");
    let target = leaf.join("cgroup.procs");
    let pids = files::read(&procs).map_err(on("reading", &procs))?;
    for pid in pids.lines() {
        match files::write(&target, pid) {
            // It has ended meanwhile.
            Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => {}
            other => other.map_err(on("moving processes into", &target))?,
        }
    }
    Ok(())
}

/// Lets the groups below `group` have these controllers.
pub(crate) fn enable(group: &Path, controllers: &[Controller]) -> Result<(), CgroupError> {
    let file = group.join("cgroup.subtree_control");
    let enabled = files::read(&file).map_err(on("reading", &file))?;
    let enabled: Vec<_> = enabled.split_ascii_whitespace().collect();
    for controller in controllers {
        if !enabled.contains(&controller.name()) {
            files::write(&file, &format!("+{}", controller.name()))
                .map_err(on("enabling controllers in", &file))?;
        }
    }
    Ok(())
}

/// Makes a folder and locks it. A sweep that comes between the two removes the folder; then it
/// is made again.
fn make_locked(folder: &Path) -> Result<File, CgroupError> {
    for _ in 0..MAKE_ATTEMPTS {
        match files::make_folder(folder) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(on("making the control group", folder)(error)),
        }
        // Waits for a sweep that has come between the two to be over.
        if let Ok(Some(lock)) = lock_folder(folder, FlockOperation::LockExclusive) {
            return Ok(lock);
        }
    }
    Err(CgroupError::NoPlace {
        reason: format!("{} cannot be locked", folder.display()),
        fix: "try again".into(),
    })
}

const MAKE_ATTEMPTS: u32 = 16;

/// Locks a folder that still exists under its name; `None` when another process holds it.
fn lock_folder(folder: &Path, how: FlockOperation) -> Result<Option<File>, CgroupError> {
    let file = File::from(
        rustix::fs::open(
            folder,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|error| on("opening", folder)(error.into()))?,
    );
    match flock(&file, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(on("locking", folder)(error.into())),
    }
    let held = file.metadata().map_err(on("looking at", folder))?;
    let named = fs_err::metadata(folder).map_err(on("looking at", folder))?;
    Ok((held.ino() == named.ino() && held.dev() == named.dev()).then_some(file))
}

#[cfg(test)]
mod tests;
