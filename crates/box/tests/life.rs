//! From the making of a box to its end, however it comes: nothing is left behind.
#![cfg(test)]

mod support;

use std::os::unix::net::UnixListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use glovebox_box::cgroup::layout::Layout;
use glovebox_box::control::{BoxEnd, FaultKind, FromLauncher};
use rustix::process::{Pid, Signal, kill_process};
use support::launcher::{Launcher, Refused, group_of, order, posture, run, spec};
use support::oracle::{Host, Pod, processes};
use support::tree;

fn kill(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
}

#[test]
fn fifty_boxes_come_and_go_without_a_trace() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    assert_eq!((before.processes(), before.groups()), (1, pod.bases.len()));
    let fds = || {
        let inner = fs_err::read_dir(format!("/proc/{}/fd", inner_pid(&pod))).unwrap();
        inner.count()
    };
    let fds_before = fds();
    for number in 0..50 {
        let facts = launcher.create(spec()).unwrap();
        if number % 10 == 0 {
            // Sleepers in sessions of their own are no way out.
            let ran = run(
                &facts,
                &["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo started"],
            );
            assert_eq!(ran.stdout, "started\n", "{ran:?}");
        }
        launcher.remove(facts.sandbox);
    }
    assert_eq!(Host::look(&pod), before);
    assert_eq!(fds(), fds_before);
    assert_eq!(launcher.list(), []);
    assert!(launcher.close().success());
    let after = Host::look(&pod);
    assert_eq!((after.processes(), after.groups()), (0, 0));
}

/// The process of the pod, which is the only one while there is no box.
fn inner_pid(pod: &Pod) -> u32 {
    *processes(pod).keys().next().unwrap()
}

#[test]
fn a_launcher_that_is_killed_takes_its_boxes_along_and_the_next_one_cleans_up() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let facts = launcher.create(spec()).unwrap();
    let ran = run(
        &facts,
        &["sh", "-c", "sleep 600 >/dev/null 2>&1 & echo started"],
    );
    assert_eq!(ran.stdout, "started\n", "{ran:?}");
    let pidfd = rustix::process::pidfd_open(
        Pid::from_raw(facts.pid).unwrap(),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    let run_folder = launcher.kill();
    // The box's first process is the last of it to go.
    let mut fds = [rustix::event::PollFd::new(
        &pidfd,
        rustix::event::PollFlags::IN,
    )];
    let patience = rustix::event::Timespec {
        tv_sec: 20,
        tv_nsec: 0,
    };
    assert_eq!(
        rustix::event::poll(&mut fds, Some(&patience)).unwrap(),
        1,
        "the box lives on"
    );
    let left = Host::look(&pod).groups();
    assert_eq!(left, pod.bases.len(), "left by the dead launcher");
    assert!(facts.socket.exists());
    let next = Launcher::start(data.path());
    // A launcher of another test may be the one that sweeps, and not yet be done.
    Host::settles(&pod, |host| host.groups() == 0 && host.processes() == 0);
    assert!(
        !run_folder.exists(),
        "sockets are left in {}",
        run_folder.display()
    );
    assert!(next.close().success());
}

#[test]
fn the_inner_process_is_no_single_point_of_leaking() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let inner = inner_pid(&pod).try_into().unwrap();
    launcher.create(spec()).unwrap();
    kill(inner, Signal::KILL);
    assert!(!launcher.child.wait().unwrap().success());
    let after = Host::look(&pod);
    assert_eq!((after.processes(), after.groups()), (0, 0));
}

#[test]
fn closing_the_line_or_a_signal_ends_every_box_in_good_order() {
    let data = tree::data();
    for by_signal in [false, true] {
        let mut launcher = Launcher::start(data.path());
        let pod = launcher.pod();
        let facts = launcher.create(spec()).unwrap();
        launcher.create(spec()).unwrap();
        if by_signal {
            kill(launcher.child.id().try_into().unwrap(), Signal::TERM);
            assert!(launcher.child.wait().unwrap().success());
        } else {
            assert!(launcher.close().success());
        }
        let after = Host::look(&pod);
        assert_eq!((after.processes(), after.groups()), (0, 0));
        assert!(!facts.socket.exists());
    }
}

#[test]
fn the_end_of_an_agent_is_told_with_its_reason() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let facts = launcher.create(spec()).unwrap();
    order(&facts, r#"{"do":"exit","code":3}"#);
    let ended = |launcher: &mut Launcher| match launcher.hear() {
        FromLauncher::Ended { end, .. } => end,
        other => panic!("the launcher said {other:?}"),
    };
    assert_eq!(ended(&mut launcher), BoxEnd::AgentExited { code: 3 });
    let facts = launcher.create(spec()).unwrap();
    kill(facts.pid, Signal::KILL);
    assert_eq!(
        ended(&mut launcher),
        BoxEnd::AgentKilled {
            signal: 9,
            out_of_memory: false
        }
    );
    let mut small = spec();
    small.kind.limits.workspace_bytes = 1024 * 1024;
    let facts = launcher.create(small).unwrap();
    order(&facts, r#"{"do":"eat","mib":200}"#);
    assert_eq!(
        ended(&mut launcher),
        BoxEnd::AgentKilled {
            signal: 9,
            out_of_memory: true
        }
    );
    assert_eq!(launcher.list(), []);
    assert_eq!(Host::look(&pod), before);
    // What has ended can be removed; that changes nothing.
    launcher.remove(facts.sandbox);
    assert!(launcher.close().success());
}

/// What is held here is one of the control groups of the box, by a group of somebody else in it.
#[test]
fn a_box_that_cannot_be_taken_away_is_told_of_once_and_tried_again_when_asked() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let mut wanted = spec();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    // Past by the time that the first attempt has been given up.
    let deadline = now + Duration::from_secs(3);
    wanted.hard_deadline_ms = Some(deadline.as_millis().try_into().unwrap());
    let facts = launcher.create(wanted).unwrap();
    let foreign = group_of(&pod, &facts).join("foreign");
    fs_err::create_dir(&foreign).unwrap();
    kill(facts.pid, Signal::KILL);
    assert!(matches!(launcher.hear(), FromLauncher::Ended { .. }));
    // The next thing it says is the answer, and not the end again, nor the deadline.
    assert_eq!(launcher.list(), std::slice::from_ref(&facts));
    fs_err::remove_dir(&foreign).unwrap();
    launcher.remove(facts.sandbox);
    assert_eq!(launcher.list(), []);
    assert_eq!(Host::look(&pod), before);
    assert!(launcher.close().success());
}

/// As root, because it takes rights to take this away.
#[test]
fn without_user_namespaces_the_refusal_names_them_and_nothing_is_left() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let data = tree::data();
    let refused = Launcher::refused_without_user_namespaces(data.path());
    let Refused { fault, run } = refused;
    assert!(fault.doing.contains("user namespace"), "{fault:?}");
    let fix = fault.fix.unwrap();
    assert!(fix.contains("max_user_namespaces"), "{fix}");
    let name = run.path().file_name().unwrap().to_str().unwrap();
    let layout = Layout::of_this_machine(0).unwrap().unwrap();
    for tree in layout.trees {
        for pod in fs_err::read_dir(tree.base).unwrap() {
            let pod = pod.unwrap().file_name();
            assert!(!pod.to_string_lossy().ends_with(name), "{pod:?} is left");
        }
    }
    assert!(!run.path().exists(), "the run folder is left");
}

#[test]
fn a_box_does_not_outlive_its_hard_deadline() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let mut wanted = spec();
    let deadline = now + Duration::from_millis(1500);
    wanted.hard_deadline_ms = Some(deadline.as_millis().try_into().unwrap());
    let facts = launcher.create(wanted).unwrap();
    assert_eq!(posture(&facts)["pid"], "1");
    assert_eq!(
        launcher.hear(),
        FromLauncher::Ended {
            sandbox: facts.sandbox,
            end: BoxEnd::DeadlineReached
        }
    );
    assert_eq!(Host::look(&pod), before);
    assert!(launcher.close().success());
}

#[test]
fn what_cannot_be_made_is_refused_with_a_reason_and_leaves_nothing() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let facts = launcher.create(spec()).unwrap();
    let mut twice = spec();
    twice.sandbox = facts.sandbox;
    assert_eq!(launcher.create(twice).unwrap_err().kind, FaultKind::Invalid);
    launcher.remove(facts.sandbox);
    for layer in ["../root-test", "/etc", "trees/a:b"] {
        let mut bad = spec();
        bad.kind.layers[1] = layer.into();
        assert_eq!(
            launcher.create(bad).unwrap_err().kind,
            FaultKind::Invalid,
            "{layer}"
        );
    }
    let mut missing = spec();
    missing.kind.layers[1] = "trees/nonesuch".into();
    let fault = launcher.create(missing).unwrap_err();
    assert!(fault.doing.contains("root of the box"), "{fault:?}");
    assert!(fault.fix.is_some(), "{fault:?}");
    fs_err::remove_file(
        data.path()
            .join(tree::LAYERS[0])
            .join("opt/glovebox/bin/glovebox-agent"),
    )
    .unwrap();
    let fault = launcher.create(spec()).unwrap_err();
    assert!(fault.doing.contains("starting the agent"), "{fault:?}");
    assert!(fault.fix.unwrap().contains("glovebox-agent"));
    assert_eq!(Host::look(&pod), before);
    assert!(launcher.close().success());
}

#[test]
fn a_second_launcher_does_not_touch_the_first_ones_boxes() {
    let data = tree::data();
    let mut first = Launcher::start(data.path());
    let facts = first.create(spec()).unwrap();
    let second = Launcher::start(data.path());
    assert!(second.close().success());
    assert_eq!(posture(&facts)["pid"], "1");
    assert!(first.close().success());
}

#[test]
fn a_socket_path_that_is_too_long_is_refused() {
    let data = tree::data();
    let mut launcher = Launcher::start_below(data.path(), &"x".repeat(80));
    let fault = launcher.create(spec()).unwrap_err();
    assert!(fault.cause.contains("longer than"), "{fault:?}");
    assert!(launcher.close().success());
    // The limit is the kernel's.
    assert!(UnixListener::bind(format!("/tmp/{}", "x".repeat(110))).is_err());
}
