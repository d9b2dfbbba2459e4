//! Boxes that are made before they are asked for: each is given away once at most, and none is left.
#![cfg(test)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use glovebox_box::cgroup::layout::Version;
use glovebox_box::control::{BoxEnd, BoxKind, FaultKind, FromLauncher, Renewal, ToLauncher};
use glovebox_protocol::launcher_line::ToAgent;
use rustix::process::{Pid, Signal, kill_process};
use support::groups;
use support::launcher::{
    Launcher, group_of, groups_of_boxes, order, order_at, posture, spec, tell, template_spec,
};
use support::lease::Lease;
use support::oracle::Host;
use support::tree;

fn kind() -> BoxKind {
    spec().kind
}

/// What an agent was told by the launcher, once it was told so much.
fn heard(socket: &Path, count: usize) -> Vec<ToAgent> {
    let text = order_at(socket, &format!(r#"{{"do":"heard","count":{count}}}"#));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_ready_box_is_given_away_once_and_becomes_what_it_was_asked_to_be() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let pool = launcher.keep_ready(&kind(), 2);
    assert_eq!((pool.wanted, pool.hits, pool.misses), (2, 0, 0));
    assert!(pool.last_refill_us > 0);
    // Until somebody asks for them they are nobody's.
    assert_eq!(launcher.list(), []);
    let sockets = launcher.sockets();
    let asked = [spec(), spec()];
    let given = asked
        .each_ref()
        .map(|spec| launcher.create(spec.clone()).unwrap());
    for ((spec, facts), socket) in asked.iter().zip(&given).zip(&sockets) {
        assert!(facts.was_ready);
        // The oldest first.
        assert_eq!((facts.sandbox, &facts.socket), (spec.sandbox, socket));
        let told = heard(socket, 2);
        let [ToAgent::PrepareKernel, ToAgent::Claim { claim }] = &told[..] else {
            panic!("it was told {told:?}");
        };
        assert_eq!(claim.sandbox, spec.sandbox);
        assert_eq!(posture(facts)["pid"], "1");
    }
    assert_eq!(launcher.list().len(), 2);
    // Another one of the same name cannot be had.
    let again = launcher.create(asked[0].clone()).unwrap_err();
    assert_eq!(again.kind, FaultKind::Invalid);
    // Others take their place.
    let pool = launcher.pool_once(|pool| pool.ready == 2);
    assert_eq!((pool.hits, pool.misses), (2, 0));
    assert!(
        launcher
            .sockets()
            .iter()
            .all(|path| !sockets[2..].contains(path))
    );
    for facts in &given {
        launcher.remove(facts.sandbox);
        assert!(!facts.socket.exists());
    }
    launcher.ask_to_keep(&kind(), 0);
    assert_eq!(launcher.pools(), []);
    Host::settles(&pod, |host| *host == before);
    assert!(launcher.close().success());
}

#[test]
fn the_groups_of_the_next_box_are_there_before_it_is() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    assert_eq!(groups_of_boxes(&pod).len(), 0);
    // One is only made once a kernel takes code, and the answer to a question comes after that.
    let spare = usize::from(groups::version() == Version::One);
    let groups_once = |launcher: &mut Launcher, ready| {
        launcher.pool_once(|pool| pool.ready == ready);
        launcher.list();
        groups_of_boxes(&pod)
    };
    launcher.keep_ready(&kind(), 1);
    let first = groups_once(&mut launcher, 1);
    assert_eq!(first.len(), 1 + spare, "{first:?}");
    launcher.keep_ready(&kind(), 2);
    let second = groups_once(&mut launcher, 2);
    assert_eq!(second.len(), 2 + spare, "{second:?}");
    // The one that was there has the name of its box now.
    let sockets = launcher.sockets();
    let named = |socket: &PathBuf| second.contains(socket.file_name().unwrap().to_str().unwrap());
    assert!(sockets.iter().all(named), "{sockets:?} {second:?}");
    // A box that is to be held to something else gets groups of its own.
    let mut other = spec();
    other.kind.limits.processes += 1;
    let other = launcher.create(other).unwrap();
    assert!(group_of(&pod, &other).exists());
    launcher.remove(other.sandbox);
    assert_eq!(groups_of_boxes(&pod), second);
    assert!(launcher.close().success());
    assert_eq!(groups_of_boxes(&pod).len(), 0);
}

#[test]
fn a_box_of_another_kind_is_made_and_one_that_is_not_ready_yet_too() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let lease = hold_agents(data.path());
    launcher.ask_to_keep(&kind(), 1);
    launcher.begin(1, &spec());
    let mut other = spec();
    other.kind.trust_domain = "somebody else".into();
    launcher.begin(2, &other);
    assert_eq!(launcher.list(), []);
    lease.let_go();
    for _ in 0..2 {
        match launcher.hear() {
            FromLauncher::Created { id: 1 | 2, facts } => assert!(!facts.was_ready),
            answer => panic!("the launcher said {answer:?}"),
        }
    }
    let pool = launcher.pool_once(|pool| pool.ready == 1);
    assert_eq!((pool.hits, pool.misses), (0, 1));
    assert!(!launcher.create(other_limits()).unwrap().was_ready);
    assert!(launcher.close().success());
}

fn other_limits() -> glovebox_box::control::BoxSpec {
    let mut other = spec();
    other.kind.limits.processes -= 1;
    other
}

/// Keeps the agents of a data folder from starting.
fn hold_agents(data: &Path) -> Lease {
    Lease::take(
        &data
            .join(tree::LAYERS[0])
            .join("opt/glovebox/bin/glovebox-agent"),
    )
}

#[test]
fn one_is_made_at_a_time_and_keeps_nobody_waiting() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let lease = hold_agents(data.path());
    launcher.ask_to_keep(&kind(), 5);
    Host::settles(&pod, |host| host.processes() == 2);
    // However often it is asked and looks again, it makes no second one.
    for _ in 0..20 {
        launcher.ask_to_keep(&kind(), 5);
        assert_eq!(launcher.list(), []);
    }
    assert_eq!(Host::look(&pod).processes(), 2);
    launcher.begin(1, &other_limits());
    Host::settles(&pod, |host| host.processes() == 3);
    lease.let_go();
    let answer = launcher.hear();
    assert!(
        matches!(answer, FromLauncher::Created { id: 1, .. }),
        "{answer:?}"
    );
    launcher.pool_once(|pool| pool.ready == 5);
    assert_eq!(Host::look(&pod).processes(), 1 + 1 + 5);
    assert!(launcher.close().success());
}

#[test]
fn a_box_that_takes_no_claim_is_ended_and_the_next_is_given_away() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    launcher.keep_ready(&kind(), 2);
    let sockets = launcher.sockets();
    order_at(&sockets[0], r#"{"do":"deafen"}"#);
    let facts = launcher.create(spec()).unwrap();
    assert!(facts.was_ready);
    assert_eq!(facts.socket, sockets[1]);
    let pool = launcher.pool_once(|pool| pool.ready == 2);
    assert_eq!((pool.hits, pool.misses), (1, 0));
    assert!(!sockets[0].exists());
    assert!(launcher.close().success());
}

#[test]
fn one_that_ends_while_it_is_nobodys_is_told_to_nobody_and_replaced() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    launcher.keep_ready(&kind(), 1);
    let socket = launcher.sockets().remove(0);
    order_at(&socket, r#"{"do":"exit","code":3}"#);
    launcher.pool_once(|_| !socket.exists());
    launcher.pool_once(|pool| pool.ready == 1);
    let facts = launcher.create(spec()).unwrap();
    assert!(facts.was_ready && facts.socket != socket);
    // What it says next is of the box that is somebody's.
    order(&facts, r#"{"do":"exit","code":4}"#);
    let (sandbox, end) = (facts.sandbox, BoxEnd::AgentExited { code: 4 });
    assert_eq!(launcher.hear(), FromLauncher::Ended { sandbox, end });
    assert!(launcher.close().success());
}

#[test]
fn the_number_can_be_changed_at_any_time() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    launcher.keep_ready(&kind(), 3);
    let oldest = launcher.sockets().remove(0);
    launcher.ask_to_keep(&kind(), 2);
    assert_eq!(launcher.pools()[0].ready, 2);
    // Its socket goes a moment after its processes.
    Host::settles(&pod, |host| host.processes() == 3 && !oldest.exists());
    launcher.keep_ready(&kind(), 4);
    launcher.ask_to_keep(&kind(), 0);
    Host::settles(&pod, |host| *host == before);
    let facts = launcher.create(spec()).unwrap();
    assert!(!facts.was_ready);
    launcher.remove(facts.sandbox);
    // Also while one is being made.
    let lease = hold_agents(data.path());
    launcher.ask_to_keep(&kind(), 1);
    launcher.ask_to_keep(&kind(), 0);
    Host::settles(&pod, |host| *host == before);
    lease.let_go();
    let mut nameless = kind();
    nameless.trust_domain.clear();
    launcher.ask(&ToLauncher::KeepReady {
        id: 1,
        kind: nameless,
        count: 1,
    });
    let answer = launcher.hear();
    assert!(
        matches!(&answer, FromLauncher::Failed { id: 1, fault } if fault.kind == FaultKind::Invalid),
        "{answer:?}"
    );
    assert!(launcher.close().success());
}

#[test]
fn what_has_become_too_old_is_ended_and_replaced() {
    let data = tree::data();
    let renewal = Renewal {
        ready_ms: 200,
        ..Renewal::default()
    };
    let mut launcher = Launcher::start_renewing(data.path(), renewal);
    launcher.keep_ready(&kind(), 1);
    let first = launcher.sockets().remove(0);
    let pool = launcher.pool_once(|pool| pool.aged_out >= 2 && pool.ready == 1);
    assert_eq!((pool.hits, pool.misses), (0, 0));
    assert!(!first.exists());
    assert!(launcher.close().success());
}

#[test]
fn a_ready_box_has_a_kernel_of_its_template_and_goes_when_that_is_renewed() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    launcher.keep_ready(&template_spec().kind, 2);
    let socket = launcher.sockets().remove(0);
    let facts = launcher.create(template_spec()).unwrap();
    assert!(facts.was_ready && facts.socket == socket);
    let told = heard(&socket, 2);
    let [ToAgent::Kernel { pid }, ToAgent::Claim { .. }] = told[..] else {
        panic!("it was told {told:?}");
    };
    order(&facts, r#"{"do":"kernel","ask":false}"#);
    assert_eq!(tell(&facts, pid, "print(6 * 7, in_advance)"), "42 1\n");
    let before = launcher.pool_once(|pool| pool.ready == 2);
    assert_eq!(before.aged_out, 0);
    let (_, templates) = launcher.measure();
    let [template] = &templates[..] else {
        panic!("there is not one template: {templates:?}");
    };
    kill_process(Pid::from_raw(template.pid).unwrap(), Signal::KILL).unwrap();
    launcher.pool_once(|pool| pool.aged_out == 2 && pool.ready == 2);
    // Who has one already keeps it.
    assert_eq!(tell(&facts, pid, "print(6 * 7)"), "42\n");
    assert!(launcher.close().success());
}

/// Each has processes of its own, so one that was given away twice would have two names.
#[test]
fn under_load_no_box_is_given_away_twice() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    launcher.keep_ready(&kind(), 8);
    let mut seen = BTreeSet::new();
    for id in 0..24 {
        launcher.begin(id, &spec());
    }
    let mut ready = 0;
    for _ in 0..24 {
        match launcher.hear() {
            FromLauncher::Created { facts, .. } => {
                assert!(seen.insert(facts.pid), "twice: {facts:?}");
                assert!(facts.socket.exists());
                ready += u64::from(facts.was_ready);
            }
            other => panic!("the launcher said {other:?}"),
        }
    }
    let pool = launcher.pools().remove(0);
    assert_eq!((pool.hits, pool.hits + pool.misses), (ready, 24));
    assert!(pool.hits >= 8);
    assert_eq!(launcher.list().len(), 24);
    assert!(launcher.close().success());
}

#[test]
fn a_runtime_that_dies_as_it_asks_takes_all_along_and_the_next_starts_with_none() {
    let data = tree::data();
    for launcher_dies in [false, true] {
        let mut launcher = Launcher::start(data.path());
        let pod = launcher.pod();
        launcher.keep_ready(&kind(), 2);
        let sockets = launcher.sockets();
        launcher.begin(1, &spec());
        if launcher_dies {
            let pid = i32::try_from(launcher.child.id()).unwrap();
            kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
            launcher.kill();
        } else {
            // Nobody ever hears the answer.
            assert!(launcher.close().success());
            assert!(sockets.iter().all(|socket| !socket.exists()));
        }
        Host::settles(&pod, |host| host.processes() == 0);
        let mut next = Launcher::start(data.path());
        assert_eq!((next.list(), next.pools()), (Vec::new(), Vec::new()));
        assert_eq!(next.sockets(), Vec::<std::path::PathBuf>::new());
        let facts = next.create(spec()).unwrap();
        assert!(!facts.was_ready && !sockets.contains(&facts.socket));
        assert!(next.close().success());
        Host::settles(&pod, |host| host.groups() == 0);
    }
}
