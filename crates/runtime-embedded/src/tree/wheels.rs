//! Installs the locked packages into a tree with pip, and prepares them for a sandbox.
//!
//! pip unpacks wheels and runs nothing of them. It checks each against the lock's hashes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fs_err as fs;

use super::command;
use super::copy;
use super::error::{SetupError, file};
use super::progress::Progress;
use super::python::Python;

const DOING: &str = "installing the packages";

/// Settings of pip that say where it installs to or what it may unpack, and would contradict ours.
/// Its settings for indexes, proxies and certificates are the user's and stay.
const OVERRULED: [&str; 9] = [
    "PIP_TARGET",
    "PIP_PREFIX",
    "PIP_ROOT",
    "PIP_USER",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_NO_BINARY",
    "PIP_CONSTRAINT",
    "PIP_REQUIREMENT",
    "PIP_COMPILE",
];

/// What is added to matplotlib's font manager.
const ADD_FALLBACK_FONTS: &str = "
# Added by Glovebox.
from matplotlib._glovebox_fonts import add_fallback_fonts

add_fallback_fonts(FontManager, FontProperties)

";

/// Where Debian keeps wheels of pip for virtual environments.
const DEBIAN_WHEELS: &str = "/usr/share/python-wheels";

/// Installs the packages that `lock` names into the tree's `site-packages`.
pub(crate) fn install(
    python: &Python,
    lock: &Path,
    library: &Path,
    progress: &mut dyn Progress,
) -> Result<(), SetupError> {
    let failed = file(DOING);
    let packages = library.join("site-packages");
    let total = fs::read_to_string(lock)
        .map_err(&failed)?
        .lines()
        .filter(|line| line.contains("=="))
        .count();
    let mut collected = 0;
    let finished = command::follow(DOING, &mut pip(python, lock, &packages)?, |line| {
        if line.starts_with("Collecting ") {
            progress.advances(collected, total);
            collected += 1;
        }
    })?;
    if !finished.status.success() {
        return Err(SetupError::Packages {
            status: finished.status,
            output: finished.output,
        });
    }
    progress.advances(total, total);
    // Commands of the packages start with a line that names the host's interpreter, and their
    // manuals have no reader in a sandbox.
    for unused in ["bin", "share"] {
        let path = packages.join(unused);
        if path.is_dir() {
            fs::remove_dir_all(path).map_err(&failed)?;
        }
    }
    remove_tests(&packages)?;
    add_fallback_fonts(&packages)?;
    copy::text(&packages.join("glovebox.pth"), "/opt/glovebox/lib\n").map_err(&failed)
}

fn pip(python: &Python, lock: &Path, packages: &Path) -> Result<Command, SetupError> {
    let mut command = Command::new(&python.executable);
    command.args(pip_program(python)?);
    for name in OVERRULED {
        command.env_remove(name);
    }
    command
        .args([
            "install",
            "--require-hashes",
            "--only-binary",
            ":all:",
            "--no-deps",
            "--no-compile",
        ])
        .args([
            "--no-input",
            "--progress-bar",
            "off",
            "--disable-pip-version-check",
        ])
        .args(["--no-warn-script-location", "--requirement"])
        .arg(lock)
        .arg("--target")
        .arg(packages);
    Ok(command)
}

/// The arguments after the interpreter that start pip: its own, else the one that came with it
/// for virtual environments.
fn pip_program(python: &Python) -> Result<Vec<OsString>, SetupError> {
    let own = Command::new(&python.executable)
        .args(["-I", "-m", "pip", "--version"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|source| SetupError::Start {
            doing: DOING,
            program: python.executable.display().to_string(),
            source,
        })?;
    if own.success() {
        return Ok(["-I", "-m", "pip"].map(OsString::from).to_vec());
    }
    let folders = [
        python.stdlib.join("ensurepip/_bundled"),
        PathBuf::from(DEBIAN_WHEELS),
    ];
    let wheel = folders.iter().find_map(|folder| pip_wheel(folder));
    match wheel {
        Some(wheel) => Ok(vec!["-I".into(), wheel.join("pip").into()]),
        None => Err(SetupError::NoPip {
            python: python.executable.clone(),
        }),
    }
}

fn pip_wheel(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("pip-") && name.ends_with(".whl")
        })
}

/// Removes the packages' own tests: a quarter of all files, which no one imports.
fn remove_tests(folder: &Path) -> Result<(), SetupError> {
    let failed = file(DOING);
    for entry in fs::read_dir(folder).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        if !entry.file_type().map_err(&failed)?.is_dir() {
            continue;
        }
        if entry.file_name() == "tests" {
            fs::remove_dir_all(entry.path()).map_err(&failed)?;
        } else {
            remove_tests(&entry.path())?;
        }
    }
    Ok(())
}

/// Makes matplotlib draw characters that the asked-for font lacks with a font that has them.
fn add_fallback_fonts(packages: &Path) -> Result<(), SetupError> {
    let failed = file(DOING);
    let module = packages.join("matplotlib/font_manager.py");
    if !module.is_file() {
        return Ok(());
    }
    let mut source = fs::read_to_string(&module).map_err(&failed)?;
    // Before the module makes its font manager, at its end.
    let made = source.find("\nfontManager = ").unwrap_or(source.len());
    source.insert_str(made, ADD_FALLBACK_FONTS);
    fs::write(&module, source).map_err(&failed)?;
    let beside = packages.join("matplotlib/_glovebox_fonts.py");
    copy::text(&beside, include_str!("fallback_fonts.py")).map_err(&failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pip_that_came_for_virtual_environments_is_found_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(pip_wheel(folder.path()), None);
        for name in [
            "setuptools-66.1.1-py3-none-any.whl",
            "pip-23.0.1-py3-none-any.whl",
        ] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = pip_wheel(folder.path()).unwrap();
        assert_eq!(found, folder.path().join("pip-23.0.1-py3-none-any.whl"));
    }

    #[test]
    fn only_tests_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["numpy/tests", "numpy/testing", "numpy/core/tests/data"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        remove_tests(folder.path()).unwrap();
        assert!(!folder.path().join("numpy/tests").exists());
        assert!(!folder.path().join("numpy/core/tests").exists());
        assert!(folder.path().join("numpy/testing").exists());
    }
}
