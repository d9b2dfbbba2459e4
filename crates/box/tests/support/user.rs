//! Ordinary users to run a launcher as: one with subordinate ids, one without. Needs root.

use std::process::Command;

use glovebox_box::prepare;

use super::launcher::User;

/// The user with subordinate ids; made once, and left for the next run.
const NAME: &str = "glovebox-test";

/// A user that stands in no file.
const NOBODY_KNOWN: User = User {
    uid: 64_123,
    gid: 64_123,
};

/// A user with a range of subordinate ids and prepared control groups.
pub(crate) fn with_range() -> User {
    let lock = fs_err::File::create("/tmp/glovebox-test-user.lock").unwrap();
    lock.lock().unwrap();
    if id("-u").is_none() {
        let made = Command::new("/usr/sbin/useradd")
            .args(["--create-home", "--shell", "/bin/sh", NAME])
            .status()
            .unwrap();
        assert!(made.success(), "useradd failed");
    }
    let ranges = fs_err::read_to_string("/etc/subuid").unwrap();
    assert!(
        ranges
            .lines()
            .any(|line| line.starts_with(&format!("{NAME}:"))),
        "useradd gave {NAME} no subordinate ids"
    );
    let user = User {
        uid: id("-u").unwrap(),
        gid: id("-g").unwrap(),
    };
    prepared(user)
}

/// A user without subordinate ids, with prepared control groups.
pub(crate) fn without_range() -> User {
    prepared(NOBODY_KNOWN)
}

fn prepared(user: User) -> User {
    for step in prepare::plan(user.uid, user.gid).unwrap() {
        step.take().unwrap();
    }
    user
}

fn id(which: &str) -> Option<u32> {
    let output = Command::new("id").args([which, NAME]).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .ok()
}
