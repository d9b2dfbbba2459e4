//! The same box for an ordinary user, with and without subordinate ids.
#![cfg(test)]

mod support;

use support::launcher::{Launcher, posture, run, spec};
use support::oracle::Host;
use support::tree;
use support::user::{self, Account};

fn data_of(user: &Account) -> tempfile::TempDir {
    let data = tree::data();
    std::os::unix::fs::chown(data.path(), Some(user.uid), Some(user.gid)).unwrap();
    data
}

#[test]
fn a_user_with_subordinate_ids_has_two_ids_per_box() {
    let user = user::with_range();
    let data = data_of(&user);
    let mut launcher = Launcher::start_as(data.path(), Some(&user), &[]).unwrap();
    assert_eq!(launcher.facts.two_ids, user.has_range);
    if !user.has_range {
        // Who runs this has none, and cannot make anybody who has.
        assert!(launcher.close().success());
        return;
    }
    let pod = launcher.pod();
    let before = Host::look(&pod);
    let first = launcher.create(spec()).unwrap();
    let second = launcher.create(spec()).unwrap();
    let all = [
        first.host_ids.agent,
        first.host_ids.workload,
        second.host_ids.agent,
        second.host_ids.workload,
    ];
    for (at, id) in all.iter().enumerate() {
        assert_ne!(*id, user.uid);
        assert!(!all[..at].contains(id), "{all:?} are not all different");
    }
    let ran = run(&first, &["cat", "/proc/self/uid_map", "/proc/self/cgroup"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(":/../work"), "{}", ran.stdout);
    launcher.remove(first.sandbox);
    launcher.remove(second.sandbox);
    assert_eq!(Host::look(&pod), before);
    assert!(launcher.close().success());
    let after = Host::look(&pod);
    assert_eq!((after.processes(), after.groups()), (0, 0));
}

#[test]
fn a_user_without_subordinate_ids_has_one_id_for_all() {
    let Some(user) = user::without_range() else {
        return;
    };
    let data = data_of(&user);
    let mut launcher = Launcher::start_as(data.path(), Some(&user), &[]).unwrap();
    assert!(!launcher.facts.two_ids);
    let facts = launcher.create(spec()).unwrap();
    assert_eq!(facts.host_ids.agent, user.uid);
    assert_eq!(facts.host_ids.workload, user.uid);
    let seen = posture(&facts);
    assert_eq!(
        seen["uid_map"].split_whitespace().collect::<Vec<_>>(),
        ["1000", "0", "1"]
    );
    assert!(seen["status"].contains("CapPrm:\t0000000000000000"));
    let ran = run(
        &facts,
        &[
            "sh",
            "-c",
            "id -u; cat /proc/self/cgroup; echo x > /workspace/f",
        ],
    );
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("1000\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains(":/../work"), "{}", ran.stdout);
    launcher.remove(facts.sandbox);
    assert!(launcher.close().success());
}
