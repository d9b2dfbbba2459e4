//! A launcher under test, a root tree to give it, and a way to talk to the stand-in agent.
#![expect(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod launcher;
pub(crate) mod oracle;
pub(crate) mod tree;
pub(crate) mod user;

/// A name in `/tmp` that the tests of one user share.
pub(crate) fn scratch(name: &str) -> std::path::PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    format!("/tmp/glovebox-test-{uid}-{name}").into()
}
