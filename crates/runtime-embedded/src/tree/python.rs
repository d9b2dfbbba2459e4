//! Finds the interpreter that a tree is made of.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::command;
use super::elf;
use super::error::{SetupError, file};

/// The versions that the toolbox is locked for, as minor versions of Python 3.
const MINORS: std::ops::RangeInclusive<u32> = 11..=13;

/// An interpreter and where its parts lie, as it says itself.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Python {
    implementation: String,
    pub(crate) version: [u32; 3],
    /// Version, build date and compiler: what tells one build of a version from another.
    pub(crate) build: String,
    pub(crate) machine: String,
    libc: String,
    abi: String,
    debug: bool,
    /// The interpreter's own file, not a shim or a link in a virtual environment.
    pub(crate) executable: PathBuf,
    pub(crate) base_prefix: PathBuf,
    pub(crate) stdlib: PathBuf,
    /// Folders of compiled standard modules.
    pub(crate) dynload: Vec<PathBuf>,
    /// Such as `x86_64-linux-gnu`; empty where the distribution has no such folders.
    pub(crate) multiarch: String,
    pub(crate) sysconfig_module: String,
    pub(crate) sysconfig: serde_json::Value,
}

impl Python {
    /// Such as `python3.11`.
    pub(crate) fn name(&self) -> String {
        format!("python{}.{}", self.version[0], self.version[1])
    }

    /// Such as `CPython 3.11.2`.
    pub(crate) fn title(&self) -> String {
        let [major, minor, patch] = self.version;
        format!("{} {major}.{minor}.{patch}", self.implementation)
    }

    /// Why this interpreter cannot be taken, if so.
    fn refusal(&self) -> Option<&'static str> {
        if self.implementation != "CPython" {
            Some("not CPython")
        } else if self.version[0] != 3 || self.version[1] < *MINORS.start() {
            Some("too old")
        } else if self.version[1] > *MINORS.end() {
            Some("newer than the locked packages know")
        } else if self.debug {
            Some("a debug build")
        } else if !self.abi.is_empty() {
            Some("a free-threaded build")
        } else if self.libc != "glibc" {
            Some("not built for glibc")
        } else {
            None
        }
    }
}

/// Finds an interpreter: the given one, or the first usable of `python3`, `python3.13` to
/// `python3.11` in the folders of `search`, then `/usr/bin/python3`.
///
/// One that is whole in its own file goes before one that is spread over a library: every call
/// within the interpreter is shorter, which shows in each execute.
pub(crate) fn find(chosen: Option<&Path>, search: &[PathBuf]) -> Result<Python, SetupError> {
    let mut tried = Vec::new();
    let mut spread = None;
    for candidate in candidates(chosen, search) {
        match probe(&candidate) {
            Ok(python) => match python.refusal() {
                None if chosen.is_some() || is_whole(&python.executable)? => return Ok(python),
                None => spread = spread.or(Some(python)),
                Some(reason) => {
                    tried.push(format!(
                        "{} is {}, {reason}",
                        candidate.display(),
                        python.title()
                    ));
                }
            },
            Err(error) => tried.push(format!("{}: {error}", candidate.display())),
        }
    }
    spread.ok_or(SetupError::NoPython { tried })
}

/// Whether the interpreter needs no library of its own.
fn is_whole(executable: &Path) -> Result<bool, SetupError> {
    let needs = elf::needs(executable).map_err(file("reading what Python is linked with"))?;
    Ok(needs.is_some_and(|needs| {
        let mut libraries = needs.libraries.iter();
        libraries.all(|name| !name.starts_with("libpython"))
    }))
}

fn candidates(chosen: Option<&Path>, search: &[PathBuf]) -> Vec<PathBuf> {
    if let Some(chosen) = chosen {
        return vec![chosen.to_path_buf()];
    }
    let names = ["python3", "python3.13", "python3.12", "python3.11"];
    let mut found: Vec<PathBuf> = names
        .iter()
        .flat_map(|name| search.iter().map(move |folder| folder.join(name)))
        .chain([PathBuf::from("/usr/bin/python3")])
        .filter(|path| path.is_absolute() && path.is_file())
        .collect();
    let mut seen = std::collections::HashSet::new();
    found.retain(|path| seen.insert(path.clone()));
    found
}

/// Asks an interpreter what it is. The program may be a shim that starts another.
pub(crate) fn probe(program: &Path) -> Result<Python, SetupError> {
    let doing = "asking Python what it is";
    let text = command::answer(
        doing,
        Command::new(program).args(["-I", "-S", "-B", "-c", include_str!("probe.py")]),
    )?;
    serde_json::from_str(&text).map_err(|source| SetupError::Answer { doing, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_interpreter_is_named() {
        let error = find(Some(Path::new("/nonexistent/python3")), &[]).unwrap_err();
        assert!(
            error.to_string().contains("/nonexistent/python3"),
            "{error}"
        );
        assert!(error.fix().contains("apt-get install python3"));
    }

    #[test]
    fn an_older_interpreter_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("python3");
        let answer = r#"{"implementation":"CPython","version":[3,9,18],"build":"","machine":"x86_64","libc":"glibc",
            "abi":"","debug":false,"executable":"/x","base_prefix":"/","stdlib":"/","dynload":[],"multiarch":"",
            "sysconfig_module":"","sysconfig":{}}"#
            .replace('\n', "");
        fs_err::write(&old, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
        fs_err::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let error = find(Some(&old), &[]).unwrap_err();
        assert!(
            error.to_string().contains("is CPython 3.9.18, too old"),
            "{error}"
        );
    }

    #[test]
    fn a_chosen_interpreter_is_taken_and_a_whole_one_preferred() {
        // Every machine with this test has one at least, and what is linked with a library of its
        // own is taken only where all are.
        let found = find(None, &[]).unwrap();
        let whole = is_whole(&found.executable).unwrap();
        let others = candidates(None, &[]);
        assert!(whole || others.len() == 1, "{found:?} of {others:?}");
        let chosen = find(Some(&found.executable), &[]).unwrap();
        assert_eq!(chosen.executable, found.executable);
    }

    #[test]
    fn folders_of_the_search_path_come_in_order_and_once() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["python3", "python3.12"] {
            fs_err::write(folder.path().join(name), "").unwrap();
        }
        let search = [folder.path().to_path_buf(), folder.path().to_path_buf()];
        let found = candidates(None, &search);
        assert_eq!(found[0], folder.path().join("python3"));
        assert_eq!(found[1], folder.path().join("python3.12"));
        assert_eq!(
            found
                .iter()
                .filter(|path| path.ends_with("python3.12"))
                .count(),
            1
        );
    }
}
