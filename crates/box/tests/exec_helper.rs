//! How the exec helper says that a start failed, and which program it takes.
#![cfg(test)]

mod support;

use support::launcher::{Launcher, run, run_as_agent, run_with, spec};
use support::tree;

#[test]
fn a_program_runs_with_its_own_status_and_streams() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    let ran = run_with(&facts, &["sh", "-c", "cat; echo err >&2; exit 7"], "in");
    assert_eq!((ran.code, ran.signal), (Some(7), None), "{ran:?}");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("in", "err\n"));
    let ran = run(&facts, &["sh", "-c", "kill -TERM $$"]);
    assert_eq!((ran.code, ran.signal), (None, Some(15)), "{ran:?}");
    assert!(launcher.close().success());
}

#[test]
fn a_start_that_fails_has_a_status_and_one_line() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    let helper = "/opt/glovebox/bin/glovebox-exec";
    for (ran, code, says) in [
        (run(&facts, &["nonesuch"]), 127, "nonesuch: No such file"),
        (
            run(&facts, &["/workspace/a/b"]),
            127,
            "/workspace/a/b: No such file",
        ),
        (run(&facts, &["/etc"]), 126, "/etc: Permission denied"),
        (run(&facts, &["a\nb"]), 127, "a\\nb: No such file"),
        (
            run_as_agent(&facts, &[helper, "--what"]),
            125,
            "unknown option \"--what\"",
        ),
        (
            run_as_agent(&facts, &[helper, "--uid", "1000", "--", "true"]),
            125,
            "--gid is missing",
        ),
    ] {
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(ran.stderr.starts_with("glovebox-exec: "), "{ran:?}");
        assert!(ran.stderr.contains(says), "{says} is not in {ran:?}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran:?}");
        assert_eq!(ran.stdout, "");
    }
    assert!(launcher.close().success());
}

#[test]
fn the_helper_is_no_way_to_another_id() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let facts = launcher.create(spec()).unwrap();
    for id in ["999", "0", "1001"] {
        let ran = run_as_agent(
            &facts,
            &[
                "/opt/glovebox/bin/glovebox-exec",
                "--uid",
                id,
                "--gid",
                id,
                "--cwd",
                "/tmp",
                "--open-files",
                "64",
                "--file-size",
                "1000",
                "--",
                "id",
                "-u",
            ],
        );
        if id == "999" {
            // Its own id is one that it may give a workload; there are no rights with it.
            assert_ne!(ran.stdout, "0\n");
        } else {
            assert_eq!(ran.code, Some(125), "{ran:?}");
        }
    }
    // A workload cannot so much as read it.
    let ran = run(&facts, &["cat", "/opt/glovebox/bin/glovebox-exec"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(1), ""),
        "{}",
        ran.stderr
    );
    let ran = run(&facts, &["/opt/glovebox/bin/glovebox-exec", "--what"]);
    assert_eq!(ran.code, Some(126), "{ran:?}");
    assert!(launcher.close().success());
}
