//! Several things at once: no box waits for another one, and what is asked of a box that is just
//! being made or taken away has a defined answer.
#![cfg(test)]

mod support;

use std::collections::BTreeMap;
use std::path::Path;

use glovebox_box::control::{BoxFacts, FaultKind, FromLauncher, ToLauncher};
use glovebox_protocol::ids::SandboxId;
use support::launcher::{Launcher, group_of, posture, spec};
use support::lease::Lease;
use support::oracle::Host;
use support::tree;

/// Keeps the agents of a data folder from starting.
fn hold_agents(data: &Path) -> Lease {
    Lease::take(
        &data
            .join(tree::LAYERS[0])
            .join("opt/glovebox/bin/glovebox-agent"),
    )
}

#[test]
fn boxes_are_made_and_removed_all_at_once() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let lease = hold_agents(data.path());
    for id in 10..18 {
        launcher.begin(id, &spec());
    }
    // All of them wait for the same thing, and so for none of the others.
    Host::settles(&pod, |host| host.processes() == 9);
    assert_eq!(launcher.list(), []);
    lease.let_go();
    let made: BTreeMap<u64, BoxFacts> = (0..8)
        .map(|_| match launcher.hear() {
            FromLauncher::Created { id, facts } => (id, facts),
            other => panic!("the launcher said {other:?}"),
        })
        .collect();
    assert!(made.keys().copied().eq(10..18), "{made:?}");
    for facts in made.values() {
        assert_eq!(posture(facts)["pid"], "1");
    }
    assert_eq!(launcher.list().len(), 8);
    for (id, facts) in &made {
        launcher.ask(&ToLauncher::Remove {
            id: *id,
            sandbox: facts.sandbox,
        });
    }
    for _ in 0..8 {
        let answer = launcher.hear();
        assert!(matches!(answer, FromLauncher::Removed { .. }), "{answer:?}");
    }
    assert_eq!(Host::look(&pod), before);
    assert!(launcher.close().success());
}

/// A number that `/proc` tells of a process.
fn told_of(pid: i32, what: &str) -> i32 {
    let status = fs_err::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(what));
    line.unwrap().trim().parse().unwrap()
}

#[test]
fn a_box_begins_without_a_copy_of_what_is_open_for_others() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let first = launcher.create(spec()).unwrap();
    let second = launcher.create(spec()).unwrap();
    // What a table of descriptors had room for once, it has room for as long as the process lives:
    // the launcher keeps what belongs to boxes above 1024, and none of it was ever in a box's.
    let launchers = told_of(told_of(second.pid, "PPid:"), "FDSize:");
    assert!(launchers > 1024, "{launchers}");
    for facts in [first, second] {
        let boxes = told_of(facts.pid, "FDSize:");
        assert!(boxes <= 256, "{boxes}");
    }
    assert!(launcher.close().success());
}

#[test]
fn a_box_that_is_being_made_can_be_removed_and_is_not_made_twice() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let lease = hold_agents(data.path());
    let wanted = spec();
    launcher.begin(1, &wanted);
    assert_eq!(launcher.list(), []);
    let again = launcher.create(wanted.clone()).unwrap_err();
    assert_eq!(again.kind, FaultKind::Invalid);
    let sandbox = wanted.sandbox;
    launcher.ask(&ToLauncher::Remove { id: 2, sandbox });
    match launcher.hear() {
        FromLauncher::Failed { id: 1, fault } => {
            assert!(fault.cause.contains("removed"), "{fault}");
        }
        other => panic!("the launcher said {other:?}"),
    }
    assert_eq!(launcher.hear(), FromLauncher::Removed { id: 2 });
    assert_eq!(Host::look(&pod), before);
    lease.let_go();
    // Its name is free again.
    launcher.create(wanted).unwrap();
    launcher.remove(sandbox);
    assert!(launcher.close().success());
}

#[test]
fn a_box_that_does_not_get_ready_is_given_up() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let lease = hold_agents(data.path());
    let fault = launcher.create(spec()).unwrap_err();
    assert!(fault.cause.contains("after 10 s"), "{fault}");
    assert_eq!(Host::look(&pod), before);
    lease.let_go();
    assert!(launcher.close().success());
}

/// What is held here is one of the control groups of the box, by a group of somebody else in it.
#[test]
fn a_box_that_is_slow_to_go_keeps_nobody_waiting() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let wanted = spec();
    let facts = launcher.create(wanted.clone()).unwrap();
    let foreign = group_of(&pod, &facts).join("foreign");
    fs_err::create_dir(&foreign).unwrap();
    let sandbox = facts.sandbox;
    launcher.ask(&ToLauncher::Remove { id: 1, sandbox });
    launcher.ask(&ToLauncher::Remove { id: 2, sandbox });
    // Until all of it is gone it is there.
    assert_eq!(launcher.list(), [facts]);
    let again = launcher.create(wanted).unwrap_err();
    assert_eq!(again.kind, FaultKind::Invalid);
    let other = launcher.create(spec()).unwrap();
    assert_eq!(posture(&other)["pid"], "1");
    launcher.remove(other.sandbox);
    fs_err::remove_dir(&foreign).unwrap();
    assert_eq!(launcher.hear(), FromLauncher::Removed { id: 1 });
    assert_eq!(launcher.hear(), FromLauncher::Removed { id: 2 });
    assert_eq!(Host::look(&pod), before);
    assert!(launcher.close().success());
}

#[test]
fn a_launcher_that_ends_gives_up_what_it_is_just_making() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let lease = hold_agents(data.path());
    launcher.begin(1, &spec());
    assert_eq!(launcher.list(), []);
    assert!(launcher.close().success());
    let after = Host::look(&pod);
    assert_eq!((after.processes(), after.groups()), (0, 0));
    lease.let_go();
}

#[test]
fn removing_what_never_was_succeeds() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    launcher.remove(SandboxId::new());
    assert!(launcher.close().success());
}
