//! A runtime on the test data, with the programs of this build.

use std::path::{Path, PathBuf};

use glovebox_box::control::DEFAULT_ROOT_RANGE_START;
use glovebox_protocol::ids::InstallationId;
use glovebox_runtime_embedded::tree::{Programs, Setup, Silent};
use glovebox_runtime_embedded::{Afterwards, Options};
use glovebox_testkit::{programs, test_data};

/// The Python of a sandbox.
pub(crate) const PYTHON: &str = "/opt/python/bin/python3";

/// What an embedded runtime of these tests needs to know.
pub(crate) fn options() -> Options {
    options_with(&programs().unwrap())
}

/// The same with the programs of another folder.
pub(crate) fn options_with(programs: &Path) -> Options {
    let data = test_data().unwrap();
    let setup = Setup {
        data: data.clone(),
        programs: Programs::in_folder(programs),
        python: None,
        search: Vec::new(),
        lock: glovebox_runtime_embedded::tree::LOCK.into(),
        office: true,
    };
    let trees = setup.ensure(&mut Silent).unwrap();
    Options {
        launcher: programs.join("glovebox-launcher"),
        data,
        run: run_folder(),
        layers: trees.layers,
        installation: InstallationId::new(),
        root_range_start: DEFAULT_ROOT_RANGE_START,
        accept_weaker: Vec::new(),
        afterwards: Afterwards::TheyEnd,
    }
}

/// A folder for sockets that is nobody else's, with a short path.
fn run_folder() -> PathBuf {
    let uid = rustix::process::geteuid();
    if uid.is_root() {
        "/run/glovebox-test".into()
    } else {
        format!("/tmp/glovebox-test-{}", uid.as_raw()).into()
    }
}
