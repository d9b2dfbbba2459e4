//! A launcher under test, a root tree to give it, and a way to talk to the stand-in agent.
#![expect(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod launcher;
pub(crate) mod lease;
pub(crate) mod oracle;
pub(crate) mod tree;
pub(crate) mod user;

pub(crate) use user::groups;

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

/// A name in `/tmp` that the tests of one user share.
pub(crate) fn scratch(name: &str) -> std::path::PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    format!("/tmp/glovebox-test-{uid}-{name}").into()
}

/// The launcher under test, where every user can run it: the folder it was built in may be closed
/// to all but its owner.
pub(crate) fn launcher_for_all() -> &'static str {
    static COPY: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    COPY.get_or_init(|| {
        let built = env!("CARGO_BIN_EXE_glovebox-launcher");
        let facts = fs_err::metadata(built).unwrap();
        let (inode, changed) = (facts.ino(), facts.ctime_nsec());
        let copy = scratch(&format!("launcher-{inode}-{changed}"));
        let unfinished = tempfile::NamedTempFile::new_in("/tmp").unwrap();
        fs_err::copy(built, unfinished.path()).unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(unfinished.path(), open).unwrap();
        // Closed before it is run: a file that is open for writing cannot be.
        unfinished.into_temp_path().persist(&copy).unwrap();
        copy.to_str().unwrap().into()
    })
}
