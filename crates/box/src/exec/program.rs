//! Becoming the program: looking it up as a shell would, with the workload's own rights.

use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStringExt as _;

use rustix::io::Errno;

use crate::sys::execute::execute;

/// Where programs are looked for when the environment does not say.
const DEFAULT_PATH: &[u8] = b"/usr/bin:/bin";

/// The environment as it was given, in the form that the kernel takes.
pub(super) struct Environment {
    entries: Vec<CString>,
    path: Vec<u8>,
}

impl Environment {
    /// The environment that the agent has set.
    pub(super) fn inherited() -> Self {
        let mut entries = Vec::new();
        let mut path = DEFAULT_PATH.to_owned();
        for (name, value) in std::env::vars_os() {
            let (mut entry, value) = (name.into_vec(), value.into_vec());
            if entry == b"PATH" {
                path.clone_from(&value);
            }
            entry.push(b'=');
            entry.extend(value);
            // The kernel has given these, so there is no zero byte in them.
            entries.extend(CString::new(entry));
        }
        Self { entries, path }
    }
}

/// Becomes the program; comes back only when that failed, with the kernel's reason.
pub(super) fn become_program(program: &[CString], environment: &Environment) -> Errno {
    let Some(name) = program.first() else {
        return Errno::NOENT;
    };
    if name.as_bytes().contains(&b'/') {
        return try_one(name, program, environment);
    }
    let mut reason = Errno::NOENT;
    for folder in environment.path.split(|byte| *byte == b':') {
        let Some(path) = joined(folder, name) else {
            continue;
        };
        match try_one(&path, program, environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            // Another folder may have one that can be executed.
            Errno::ACCESS => reason = Errno::ACCESS,
            error => return error,
        }
    }
    reason
}

/// A folder that is named by nothing would mean the working folder; a shell takes it so, and it
/// is how programs of a workspace get called by mistake. Only absolute folders are searched.
fn joined(folder: &[u8], name: &CStr) -> Option<CString> {
    if folder.first() != Some(&b'/') {
        return None;
    }
    CString::new([folder, b"/", name.to_bytes()].concat()).ok()
}

fn try_one(path: &CStr, program: &[CString], environment: &Environment) -> Errno {
    let error = execute(path, program, &environment.entries);
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_folders_are_searched() {
        assert_eq!(joined(b"/bin", c"ls"), Some(c"/bin/ls".to_owned()));
        assert_eq!(joined(b"", c"ls"), None);
        assert_eq!(joined(b".", c"ls"), None);
    }
}
