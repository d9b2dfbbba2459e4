//! The mechanics of version 2 on the kernel's own hierarchy, which this test finds on a machine of
//! either version: at its root, or below the group of an ordinary user. Where the user may make
//! none, that this is said is all that can be seen.

use std::process::{Command, Stdio};

use glovebox_protocol::class::ResourceClass;
use rustix::fs::{Gid, Uid};

use super::*;
use crate::cgroup::layout::{Layout, Tree};
use crate::cgroup::pod::sweep;

fn unified(name: &str) -> Layout {
    let mountinfo = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mountinfo
        .lines()
        .find(|line| line.contains(" - cgroup2 "))
        .unwrap();
    let mount = PathBuf::from(line.split(' ').nth(4).unwrap());
    let parent = if rustix::process::geteuid().is_root() {
        mount.clone()
    } else {
        let own = fs_err::read_to_string("/proc/self/cgroup").unwrap();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/"));
        mount.join(own.unwrap())
    };
    Layout {
        version: Version::Two,
        trees: vec![Tree {
            base: parent.join(format!("glovebox-{name}-{}", std::process::id())),
            // So that the parent keeps the processes that are in it.
            mount: parent,
            controllers: [].into(),
        }],
    }
}

/// Whether groups can be made here. If not, everything is missing by name.
fn can_make(layout: &Layout) -> bool {
    let (pod, missing) = PodGroups::make(layout, "try", None);
    assert_eq!(missing.len(), 4, "{missing:?}");
    if pod.trees.is_empty() {
        return false;
    }
    pod.remove().unwrap();
    true
}

fn make_box(pod: &PodGroups) -> BoxGroups {
    let limits = Limits::of(ResourceClass::Small);
    BoxGroups::make(pod, "box", &limits, 1, &Omissions::default()).unwrap()
}

#[test]
fn a_box_of_version_two_is_entered_and_killed_as_a_whole() {
    let layout = unified("box");
    if !can_make(&layout) {
        return;
    }
    let owner = rustix::process::geteuid()
        .is_root()
        .then(|| (Uid::from_raw(4_000_000), Gid::from_raw(4_000_000)));
    let (pod, missing) = PodGroups::make(&layout, "pod", owner);
    // This hierarchy was made without controllers.
    assert_eq!(missing.len(), 4, "{missing:?}");
    let groups = make_box(&pod);
    assert!(groups.clone_target().unwrap().is_some());
    let doors = groups.work_doors(0).unwrap();
    assert!(matches!(doors[..], [Door::Open(_)]), "{doors:?}");
    let mut sleeper = Command::new("sleep")
        .arg("600")
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let Some(Door::Open(door)) = doors.into_iter().next() else {
        panic!("no door");
    };
    rustix::io::write(&door, sleeper.id().to_string().as_bytes()).unwrap();
    // Reaped by a thread, as a box's first process reaps what is killed in it.
    let reaper = std::thread::spawn(move || sleeper.wait().unwrap());
    remove(&groups);
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&reaper.join().unwrap()),
        Some(9)
    );
    pod.remove().unwrap();
    files::remove_folder(&layout.trees[0].base).unwrap();
}

#[test]
fn a_sweep_takes_what_nobody_holds_and_nothing_else() {
    let layout = unified("sweep");
    if !can_make(&layout) {
        return;
    }
    let (held, _) = PodGroups::make(&layout, "held", None);
    let (dead, _) = PodGroups::make(&layout, "dead", None);
    make_box(&held);
    make_box(&dead);
    let (held_folder, dead_folder) = (held.trees[0].folder.clone(), dead.trees[0].folder.clone());
    drop(dead);
    sweep(&layout).unwrap();
    assert!(held_folder.join("box/work").exists());
    assert!(!dead_folder.exists());
    held.remove().unwrap();
    files::remove_folder(&layout.trees[0].base).unwrap();
}

#[test]
fn groups_that_cannot_all_be_made_leave_none_and_the_first_reason() {
    let layout = unified("half");
    if !can_make(&layout) {
        return;
    }
    let (mut pod, _) = PodGroups::make(&layout, "pod", None);
    let (mut other, _) = PodGroups::make(&layout, "other", None);
    let mut second = other.trees.remove(0);
    let real = std::mem::replace(&mut second.folder, "/nonexistent".into());
    pod.trees.push(second);
    let limits = Limits::of(ResourceClass::Small);
    let error = BoxGroups::make(&pod, "box", &limits, 1, &Omissions::default()).unwrap_err();
    assert!(error.to_string().contains("/nonexistent/box"), "{error}");
    assert!(!pod.trees[0].folder.join("box").exists());
    pod.trees[1].folder = real;
    pod.remove().unwrap();
    files::remove_folder(&layout.trees[0].base).unwrap();
}

#[test]
fn what_stays_is_told_without_waiting_and_goes_once_it_can() {
    let layout = unified("stays");
    if !can_make(&layout) {
        return;
    }
    let (mut pod, _) = PodGroups::make(&layout, "one", None);
    let (mut other, _) = PodGroups::make(&layout, "two", None);
    pod.trees.append(&mut other.trees);
    let groups = make_box(&pod);
    // Somebody else's: it stays, and so does what it is in.
    let foreign = pod.trees[0].folder.join("box/foreign");
    files::make_folder(&foreign).unwrap();
    let error = groups.try_remove().unwrap_err();
    assert!(error.is_passing(), "{error:?}");
    // It is no reason to leave the other hierarchy's.
    assert!(!pod.trees[1].folder.join("box").exists());
    files::remove_folder(&foreign).unwrap();
    groups.try_remove().unwrap();
    pod.remove().unwrap();
    files::remove_folder(&layout.trees[0].base).unwrap();
}

/// Removes groups with processes in them that somebody waits for.
fn remove(groups: &BoxGroups) {
    while let Err(error) = groups.try_remove() {
        assert!(error.is_passing(), "{error:?}");
    }
}
