//! A runtime on this machine's Docker, with the image of this build.

#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod between;

use std::path::PathBuf;
use std::time::Duration;

use glovebox_protocol::ids::InstallationId;
use glovebox_runtime_engine::Options;

/// The Python of a sandbox.
pub(crate) const PYTHON: &str = "/opt/python/bin/python3";

/// Where Docker listens, unless it was told otherwise.
pub(crate) const SOCKET: &str = "/var/run/docker.sock";

/// What an engine runtime of these tests needs to know.
pub(crate) fn options() -> Options {
    options_of(InstallationId::new())
}

/// The same for an installation that there is already.
pub(crate) fn options_of(installation: InstallationId) -> Options {
    Options {
        socket: SOCKET.into(),
        image: image(),
        runtime: None,
        installation,
        state: state(),
        patience: Duration::from_secs(60),
    }
}

/// The id of the image that `scripts/image sandbox` has built of these programs.
pub(crate) fn image() -> String {
    let file = glovebox_testkit::programs()
        .unwrap()
        .join("sandbox-image.id");
    let id = fs_err::read_to_string(&file);
    id.expect("`make test` builds the image with scripts/image sandbox")
        .trim()
        .to_owned()
}

/// A folder for locks.
fn state() -> PathBuf {
    std::env::temp_dir().join(format!(
        "glovebox-engine-test-{}",
        rustix::process::geteuid().as_raw()
    ))
}

/// Removes what a failed test has left of an installation, when it is dropped.
pub(crate) struct Cleaner(pub(crate) InstallationId);

impl Drop for Cleaner {
    fn drop(&mut self) {
        for container in containers(self.0) {
            // Gone by itself is as good.
            let _ = docker(&["rm", "--force", "--volumes", &container]);
        }
    }
}

/// The containers of an installation, by id.
pub(crate) fn containers(installation: InstallationId) -> Vec<String> {
    let filter = format!("label=glovebox.installation={installation}");
    let listed = docker(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]);
    listed.lines().map(str::to_owned).collect()
}

/// What Docker's own command says.
pub(crate) fn docker(arguments: &[&str]) -> String {
    let output = std::process::Command::new("docker")
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
