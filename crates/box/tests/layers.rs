//! What lies in a layer does not decide where a box mounts something.
#![cfg(test)]

mod support;

use support::launcher::{Launcher, run, spec};
use support::tree;

#[test]
fn a_link_or_a_file_in_a_mounts_place_refuses_the_start() {
    for target in ["workspace", "tmp", "dev", "proc"] {
        for leads_to in [
            Some("/"),
            Some(".."),
            Some("etc"),
            Some("/nonexistent"),
            None,
        ] {
            let data = tree::data();
            let place = data.path().join(tree::LAYERS[0]).join(target);
            match leads_to {
                Some(leads_to) => fs_err::os::unix::fs::symlink(leads_to, place).unwrap(),
                None => fs_err::write(place, "").unwrap(),
            }
            let mut launcher = Launcher::start(data.path());
            let fault = launcher.create(spec()).unwrap_err();
            assert!(fault.doing.contains(target_in_words(target)), "{fault:?}");
            let fix = fault.fix.unwrap_or_default();
            assert!(fix.contains("a link or a file"), "{target}: {fix}");
            assert!(launcher.close().success());
        }
    }
}

fn target_in_words(target: &str) -> &str {
    if target == "dev" { "devices" } else { target }
}

#[test]
fn a_link_in_the_place_of_the_roots_own_mount_point_refuses_the_start() {
    let data = tree::data();
    let place = data.path().join("mount-point");
    fs_err::os::unix::fs::symlink("/tmp", place).unwrap();
    let mut launcher = Launcher::start(data.path());
    let fault = launcher.create(spec()).unwrap_err();
    assert!(fault.doing.contains("root"), "{fault:?}");
    assert!(launcher.close().success());
}

/// The kernel counts them for the user of the host, over all namespaces.
#[test]
fn one_box_does_not_use_up_the_watchers_of_files() {
    let data = tree::data();
    let mut launcher = Launcher::start(data.path());
    let (one, two) = (
        launcher.create(spec()).unwrap(),
        launcher.create(spec()).unwrap(),
    );
    let take = "
import ctypes, errno, sys
libc = ctypes.CDLL(None, use_errno=True)
made = 0
while libc.inotify_init() >= 0: made += 1
print(made, errno.errorcode[ctypes.get_errno()], flush=True)
sys.stdin.read()";
    for facts in [&one, &two] {
        let ran = run(facts, &["python3", "-c", take]);
        assert_eq!(ran.stdout, "16 EMFILE\n", "{ran:?}");
    }
    assert!(launcher.close().success());
}
