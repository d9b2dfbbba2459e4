//! The mechanics of version 2 on the kernel's own hierarchy, without controllers, which this test
//! finds on a machine of either version. Needs root.

use std::process::{Command, Stdio};

use glovebox_protocol::class::ResourceClass;
use rustix::fs::{Gid, Uid};

use super::*;
use crate::cgroup::layout::{Layout, Tree};
use crate::cgroup::pod::sweep;

fn unified() -> Layout {
    let mountinfo = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
    let line = mountinfo
        .lines()
        .find(|line| line.contains(" - cgroup2 "))
        .unwrap();
    let mount = PathBuf::from(line.split(' ').nth(4).unwrap());
    Layout {
        version: Version::Two,
        trees: vec![Tree {
            base: mount.join(format!("glovebox-unit-{}", std::process::id())),
            mount,
            controllers: [].into(),
        }],
    }
}

fn make_box(pod: &PodGroups) -> BoxGroups {
    let limits = Limits::of(ResourceClass::Small);
    BoxGroups::make(pod, "box", &limits, 1, &Omissions::default()).unwrap()
}

#[test]
fn a_box_of_version_two_is_entered_and_killed_as_a_whole() {
    let layout = unified();
    let owner = Some((Uid::from_raw(4_000_000), Gid::from_raw(4_000_000)));
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
    groups.remove(Duration::from_secs(10)).unwrap();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&reaper.join().unwrap()),
        Some(9)
    );
    pod.remove().unwrap();
    files::remove_folder(&layout.trees[0].base).unwrap();
}

#[test]
fn a_sweep_takes_what_nobody_holds_and_nothing_else() {
    let mut layout = unified();
    layout.trees[0].base.set_extension("sweep");
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
