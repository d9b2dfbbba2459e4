//! Ordinary users to run a launcher as: one with subordinate ids, one without.
//!
//! Root runs it as users that exist for the launcher alone: the files that name them are mounted
//! over the host's in a mount namespace of its own, and the control groups that are prepared for
//! them go when the last test has used them. On version 2 each command has one of its own, as the
//! user's systemd would make it. Whoever is no root is the ordinary user.

use std::fs::File;
use std::path::Path;
use std::process::Command;

use glovebox_box::cgroup::layout::Version;
use glovebox_box::prepare;
use tempfile::TempDir;

// By its path, because another crate's tests take this file from here.
#[path = "groups.rs"]
pub(crate) mod groups;

/// Ids that no distribution gives to anybody.
const WITH_RANGE: u32 = 64_122;
const WITHOUT_RANGE: u32 = 64_123;
const UNPREPARED: u32 = 64_125;

/// Far from the ranges of other users, and from root's.
const RANGE: &str = "2000000000:65536";

/// The files in which users and their subordinate ids stand.
const FILES: [&str; 4] = ["passwd", "group", "subuid", "subgid"];

/// An ordinary user.
pub(crate) struct Account {
    pub uid: u32,
    pub gid: u32,
    /// Whether it has subordinate ids.
    pub has_range: bool,
    /// What its launcher sees in place of the host's files.
    files: Option<TempDir>,
    /// Held for as long as its control groups are needed.
    lock: Option<File>,
}

/// A user with subordinate ids, where one can be had: root can make one.
pub(crate) fn with_range() -> Account {
    if !is_root() {
        return present();
    }
    let files = tempfile::tempdir().unwrap();
    let id = WITH_RANGE;
    for (name, line) in FILES.into_iter().zip([
        format!("glovebox-test:x:{id}:{id}::/:/bin/sh\n"),
        format!("glovebox-test:x:{id}:\n"),
        format!("glovebox-test:{RANGE}\n"),
        format!("glovebox-test:{RANGE}\n"),
    ]) {
        let host = fs_err::read_to_string(format!("/etc/{name}")).unwrap_or_default();
        fs_err::write(files.path().join(name), format!("{host}{line}")).unwrap();
    }
    // The programs that write maps read these files as root, and the launcher as the user.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(files.path(), open).unwrap();
    prepared(id, Some(files))
}

/// A user without subordinate ids; `None` where nobody is one.
pub(crate) fn without_range() -> Option<Account> {
    if is_root() {
        return Some(prepared(WITHOUT_RANGE, None));
    }
    Some(present()).filter(|account| !account.has_range)
}

/// A user for whom nothing was prepared; `None` where nobody is one.
pub(crate) fn unprepared() -> Option<Account> {
    is_root().then_some(Account {
        uid: UNPREPARED,
        gid: UNPREPARED,
        has_range: false,
        files: None,
        lock: None,
    })
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whoever runs the tests.
fn present() -> Account {
    let uid = rustix::process::getuid().as_raw();
    let name = Command::new("id").arg("-un").output().unwrap();
    let name = String::from_utf8(name.stdout).unwrap();
    let stands_in = |file: &str| {
        let text = fs_err::read_to_string(file).unwrap_or_default();
        text.lines().any(|line| {
            let owner = line.split(':').next().unwrap_or_default();
            owner == name.trim() || owner == uid.to_string()
        })
    };
    let tool = |name: &str| std::path::Path::new("/usr/bin").join(name).exists();
    Account {
        uid,
        gid: rustix::process::getgid().as_raw(),
        has_range: stands_in("/etc/subuid") && stands_in("/etc/subgid") && tool("newuidmap"),
        files: None,
        lock: None,
    }
}

fn prepared(id: u32, files: Option<TempDir>) -> Account {
    let lock = fs_err::File::create(super::scratch(&format!("user-{id}.lock"))).unwrap();
    lock.lock_shared().unwrap();
    // On version 2 it would be the machine's systemd that is told to do something else.
    if groups::version() == Version::One {
        for step in prepare::plan(id, id).unwrap() {
            step.take().unwrap();
        }
    }
    Account {
        uid: id,
        gid: id,
        has_range: files.is_some(),
        files,
        lock: Some(lock.into_parts().0),
    }
}

impl Account {
    /// Runs a program as this user.
    pub(crate) fn command(&self, program: &str) -> Command {
        if !is_root() {
            return Command::new(program);
        }
        let script = "scope=$1 folder=$2 id=$3; shift 3
            if [ -n \"$scope\" ]; then echo $$ >\"$scope/cgroup.procs\" || exit; fi
            for name in ${folder:+passwd group subuid subgid}; do
                mount --bind \"$folder/$name\" /etc/$name || exit
            done
            exec setpriv --reuid $id --regid $id --clear-groups -- \"$@\"";
        let prepared = self.lock.is_some() && groups::version() == Version::Two;
        let scope = prepared.then(|| groups::scope(self.uid));
        let files = self.files.as_ref().map(TempDir::path);
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "--propagation", "private", "sh", "-c"])
            .args([script, "sh"])
            .arg(scope.unwrap_or_default())
            .arg(files.unwrap_or_else(|| Path::new("")))
            .arg(self.uid.to_string())
            .arg(program);
        command
    }
}

impl Drop for Account {
    /// Takes the control groups away, unless another test uses them.
    fn drop(&mut self) {
        let Some(lock) = &self.lock else { return };
        lock.unlock().unwrap();
        if lock.try_lock().is_err() {
            return;
        }
        groups::leave(self.uid);
    }
}
