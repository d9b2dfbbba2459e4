//! Control groups on the machine that runs the tests, of whichever version they are.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use glovebox_box::cgroup::layout::{Layout, Version};
use glovebox_box::control::BoxFacts;

/// Which interface this machine has, as far as it limits anything.
pub(crate) fn version() -> Version {
    Layout::of_this_machine(0).unwrap().unwrap().version
}

/// The folders in which the pods of a launcher are, one for each hierarchy.
pub(crate) fn bases(uid: u32, launcher: u32) -> Vec<PathBuf> {
    let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let own = fs_err::read_to_string(format!("/proc/{launcher}/cgroup")).unwrap();
    let layout = Layout::find(&mounts, &own, uid);
    let trees = layout.into_iter().flat_map(|layout| layout.trees);
    trees.map(|tree| tree.base).collect()
}

/// What stands in a file of the workload's group of a box, which whoever runs the tests has made.
/// It has another name in each version.
pub(crate) fn work_file(facts: &BoxFacts, one: &str, two: &str) -> String {
    let name = match version() {
        Version::One => one,
        Version::Two => two,
    };
    let uid = rustix::process::geteuid().as_raw();
    let place = Path::new(&facts.sandbox.to_string())
        .join("work")
        .join(name);
    bases(uid, std::process::id())
        .into_iter()
        .flat_map(|base| fs_err::read_dir(base).unwrap())
        .find_map(|pod| fs_err::read_to_string(pod.unwrap().path().join(&place)).ok())
        .unwrap_or_else(|| panic!("no group has {}", place.display()))
}

/// Makes a group of version 2 that is handed over to a user, as the user's systemd would make one
/// for each command.
pub(crate) fn scope(uid: u32) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let parent = scopes(uid);
    let _ = fs_err::create_dir(&parent);
    for group in [parent.parent().unwrap(), &parent] {
        fs_err::write(group.join("cgroup.subtree_control"), "+memory +pids +cpu").unwrap();
    }
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let scope = parent.join(format!("glovebox-{}{number:04}.scope", std::process::id()));
    fs_err::create_dir(&scope).unwrap();
    for file in [
        "",
        "cgroup.procs",
        "cgroup.subtree_control",
        "cgroup.threads",
    ] {
        std::os::unix::fs::chown(scope.join(file), Some(uid), Some(uid)).unwrap();
    }
    scope
}

/// Takes away everything that was prepared for a user. What is in use stays.
pub(crate) fn leave(uid: u32) {
    match version() {
        Version::One => {
            for base in bases(uid, std::process::id()) {
                // A launcher that was killed leaves groups in it, which the next one sweeps.
                let _ = fs_err::remove_dir(base);
            }
        }
        Version::Two => remove_with_all_below(&scopes(uid)),
    }
}

fn scopes(uid: u32) -> PathBuf {
    let layout = Layout::of_this_machine(0).unwrap().unwrap();
    layout.trees[0].mount.join(format!("glovebox-tests-{uid}"))
}

fn remove_with_all_below(group: &Path) {
    let below = fs_err::read_dir(group).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().unwrap().is_dir()) {
        remove_with_all_below(&entry.path());
    }
    let _ = fs_err::remove_dir(group);
}
