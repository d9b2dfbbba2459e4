//! Where the built programs, the test data and the repository are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

/// An environment variable that tests are steered with.
#[expect(
    clippy::disallowed_methods,
    reason = "tests have no command line to take values from; all their variables are read here"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The root of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// The folder with the programs of the build that this test belongs to, such as
/// `target/x86_64-unknown-linux-gnu/debug`.
///
/// # Errors
/// When the test's own program is not where cargo puts it.
pub fn programs() -> Result<PathBuf> {
    let me = std::env::current_exe().context("finding the test's own program")?;
    // …/debug/deps/name-hash
    let folder = me
        .ancestors()
        .nth(2)
        .with_context(|| format!("{} is not in a folder of cargo's", me.display()))?;
    Ok(folder.to_path_buf())
}

/// One built program by its name, such as `glovebox`.
///
/// # Errors
/// When it has not been built; `make test` builds all programs before it runs a test.
pub fn program(name: &str) -> Result<PathBuf> {
    let path = programs()?.join(name);
    ensure!(
        path.is_file(),
        "there is no program {}; `make build` makes it",
        path.display()
    );
    Ok(path)
}

/// Cargo's target folder.
///
/// # Errors
/// When the test's own program is not where cargo puts it.
pub fn cargo_target() -> Result<PathBuf> {
    let programs = programs()?;
    // …/target/x86_64-unknown-linux-gnu/debug
    let target = programs
        .ancestors()
        .nth(2)
        .with_context(|| format!("{} is not in a folder of cargo's", programs.display()))?;
    Ok(target.to_path_buf())
}

/// The data folder of tests, with the root tree in it: `GLOVEBOX_TEST_DATA`, else `test-data` in
/// cargo's target folder.
///
/// # Errors
/// When nobody has set it up; `make test` does so before it runs a test.
pub fn test_data() -> Result<PathBuf> {
    let data = match variable("GLOVEBOX_TEST_DATA") {
        Some(path) => PathBuf::from(path),
        None => cargo_target()?.join("test-data"),
    };
    ensure!(
        data.is_dir(),
        "there is no test data in {0}; `glovebox setup --data {0}` makes it",
        data.display()
    );
    Ok(data)
}

/// The toolbox's Python, for programs that run outside a sandbox. It is the newest tree of the
/// test data, taken as it lies there.
///
/// # Errors
/// When there is no test data, or no tree in it.
pub fn toolbox_python() -> Result<PathBuf> {
    let trees = test_data()?.join("trees");
    let mut found: Vec<_> = fs_err::read_dir(&trees)?
        .filter_map(Result::ok)
        // A tree that is still being built has a hidden name.
        .filter(|entry| !entry.file_name().as_encoded_bytes().starts_with(b"."))
        .map(|entry| entry.path().join("opt/python/bin/python3"))
        .filter(|python| python.is_file())
        .collect();
    found.sort_by_key(|python| fs_err::metadata(python).and_then(|m| m.modified()).ok());
    found
        .pop()
        .with_context(|| format!("there is no root tree in {}", trees.display()))
}

/// The folder with the library of the toolbox's Python. Outside of its tree the interpreter finds
/// it by `LD_LIBRARY_PATH` only, and would else take another of the same name from the host.
///
/// # Errors
/// As for [`toolbox_python`].
pub fn toolbox_libraries() -> Result<PathBuf> {
    let python = toolbox_python()?;
    let home = python.ancestors().nth(2).unwrap_or(&python);
    Ok(home.join("lib"))
}
