//! What the doctor finds on this machine, for root and for ordinary users.

#![cfg(test)]

mod support;

use std::path::Path;

use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_box::probe::{self, Status, Trials};
use glovebox_box::weakness::Weakness;
use support::launcher::Launcher;
use support::tree;
use support::user::{self, Account};

fn tried_as(user: &Account) -> Trials {
    let output = user
        .command(support::launcher_for_all())
        .arg("--try")
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn what_works_in_tests_is_found_to_work() {
    let data = tree::data();
    let found = probe::run(
        Path::new(support::launcher_for_all()),
        Some(data.path()),
        DEFAULT_ROOT_RANGE_START,
    );
    let failed: Vec<_> = found
        .unwrap()
        .into_iter()
        .filter(|check| check.status == Status::Fail)
        .collect();
    assert_eq!(failed, []);
}

#[test]
fn an_ordinary_user_is_told_about_ids_and_control_groups() {
    let user = user::with_range();
    let ranged = tried_as(&user);
    assert_eq!(ranged.two_ids, user.has_range);
    assert_eq!(ranged.groups.missing, []);
    assert!(
        ranged.steps.iter().all(|step| step.error.is_none()),
        "{ranged:?}"
    );
    let Some(unprepared) = user::unprepared() else {
        return;
    };
    let plain = tried_as(&unprepared);
    assert!(!plain.two_ids);
    assert!(
        plain.steps.iter().all(|step| step.error.is_none()),
        "{plain:?}"
    );
    let missing: Vec<_> = plain.groups.missing.iter().map(|(w, _)| *w).collect();
    for weakness in [
        Weakness::MemoryLimit,
        Weakness::ProcessLimit,
        Weakness::CpuLimit,
    ] {
        assert!(missing.contains(&weakness), "{missing:?}");
    }
}

#[test]
fn a_user_without_control_groups_is_refused_by_name_until_that_is_accepted() {
    let Some(user) = user::unprepared() else {
        return;
    };
    let data = tree::data();
    std::os::unix::fs::chown(data.path(), Some(user.uid), Some(user.gid)).unwrap();
    let fault = Launcher::start_as(data.path(), Some(&user), &[])
        .err()
        .unwrap();
    assert!(fault.to_string().contains("-limit"), "{fault:?}");
    assert!(fault.fix.unwrap().contains("--accept-weaker="));
    let all = Weakness::ALL;
    let mut launcher = Launcher::start_as(data.path(), Some(&user), &all).unwrap();
    assert_eq!(launcher.facts.cgroup_version, 0);
    assert!(launcher.facts.weaker.contains(&Weakness::MemoryLimit));
    let facts = launcher.create(support::launcher::spec()).unwrap();
    let ran = support::launcher::run(&facts, &["true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(launcher.close().success());
}
