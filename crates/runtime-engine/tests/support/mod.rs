//! A runtime on this machine's Docker, with the image of this build.

#![allow(dead_code, reason = "each test file uses its part")]

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
    let file = glovebox_testkit::programs().unwrap().join("sandbox-image.id");
    let id = fs_err::read_to_string(&file);
    id.expect("`make test` builds the image with scripts/image sandbox").trim().to_owned()
}

/// A folder for locks.
fn state() -> PathBuf {
    std::env::temp_dir().join("glovebox-engine-test")
}
