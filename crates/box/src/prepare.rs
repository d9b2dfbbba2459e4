//! What root can prepare so that an ordinary user's sandboxes have control groups.
//!
//! A plan is made first and described, and only then done: `doctor --fix` says each step before
//! it takes it. Nothing in here runs without being asked.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Gid, Uid};

use crate::cgroup::files::make_folder;
use crate::cgroup::layout::{Layout, Version};

/// The file with which systemd is told to pass controllers on to users.
const DROP_IN: &str = "/etc/systemd/system/user@.service.d/50-glovebox.conf";

/// What stands in it.
const DROP_IN_TEXT: &str = "\
# Written by `glovebox doctor --fix`: lets users limit memory, processes and processor time of
# what they start.
[Service]
Delegate=cpu memory pids
";

/// One thing that root does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Makes a control group for a user (version 1). It is gone after a reboot.
    GiveGroup {
        /// The group's folder.
        folder: PathBuf,
        /// The user who gets it.
        uid: u32,
        /// The user's group.
        gid: u32,
    },
    /// Writes a file of settings (version 2).
    WriteFile {
        /// Which file.
        path: PathBuf,
        /// What is written.
        text: String,
    },
    /// Runs a program.
    Run {
        /// The program and its arguments.
        argv: Vec<String>,
    },
}

/// How preparing can fail.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// There is nothing that could be prepared.
    #[error("{0}")]
    Impossible(String),
    /// The kernel's list of mounts could not be read.
    #[error("looking for control groups")]
    Look(#[source] std::io::Error),
    /// A step failed.
    #[error("{doing}")]
    Step {
        /// What was being done.
        doing: String,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

/// Plans what root has to do for the user `uid` on this machine.
///
/// # Errors
/// When this machine has nothing that could be prepared.
pub fn plan(uid: u32, gid: u32) -> Result<Vec<Step>, PrepareError> {
    if uid == 0 {
        return Err(PrepareError::Impossible(
            "root's sandboxes need no preparation".into(),
        ));
    }
    let layout = Layout::of_this_machine(uid).map_err(PrepareError::Look)?;
    let has_systemd = Path::new("/run/systemd/system").is_dir();
    plan_for(layout.as_ref(), has_systemd, uid, gid)
}

fn plan_for(
    layout: Option<&Layout>,
    has_systemd: bool,
    uid: u32,
    gid: u32,
) -> Result<Vec<Step>, PrepareError> {
    match layout {
        Some(layout) if layout.version == Version::One => Ok(layout
            .trees
            .iter()
            .map(|tree| Step::GiveGroup {
                folder: tree.base.clone(),
                uid,
                gid,
            })
            .collect()),
        Some(_) if has_systemd => Ok(vec![
            Step::WriteFile {
                path: DROP_IN.into(),
                text: DROP_IN_TEXT.into(),
            },
            Step::Run {
                argv: ["systemctl", "daemon-reload"].map(str::to_owned).into(),
            },
        ]),
        Some(_) => Err(PrepareError::Impossible(
            "control groups of version 2 are passed on to users by systemd, which does not run here; run Glovebox as root, or accept the missing limits by name".into(),
        )),
        None => Err(PrepareError::Impossible(
            "no control groups are mounted on this machine".into(),
        )),
    }
}

impl Step {
    /// What the step does, in one sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::GiveGroup { folder, uid, .. } => format!(
                "make the control group {} and give it to user {uid} (until the next reboot)",
                folder.display()
            ),
            Self::WriteFile { path, text } => {
                format!("write {}:\n{}", path.display(), text.trim_end())
            }
            Self::Run { argv } => format!("run `{}`", argv.join(" ")),
        }
    }

    /// Takes the step. Taking it twice does no harm.
    ///
    /// # Errors
    /// When it fails; steps before it stay done.
    pub fn take(&self) -> Result<(), PrepareError> {
        let result = match self {
            Self::GiveGroup { folder, uid, gid } => give_group(folder, *uid, *gid),
            Self::WriteFile { path, text } => write_file(path, text),
            Self::Run { argv } => run(argv),
        };
        result.map_err(|source| PrepareError::Step {
            doing: self.describe(),
            source,
        })
    }
}

/// The folder, and the file through which processes are moved into it; what limits the group as
/// a whole stays root's.
fn give_group(folder: &Path, uid: u32, gid: u32) -> std::io::Result<()> {
    match make_folder(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    rustix::fs::chown(folder, uid, gid)?;
    rustix::fs::chown(folder.join("cgroup.procs"), uid, gid)?;
    Ok(())
}

fn write_file(path: &Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs_err::create_dir_all(folder)?;
    }
    fs_err::write(path, text)
}

fn run(argv: &[String]) -> std::io::Result<()> {
    let Some((program, arguments)) = argv.split_first() else {
        return Ok(());
    };
    let status = Command::new(program).args(arguments).status()?;
    if status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("it ended with {status}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::layout::{Controller, Tree};

    fn layout(version: Version) -> Layout {
        Layout {
            version,
            trees: vec![Tree {
                mount: "/sys/fs/cgroup/memory".into(),
                base: "/sys/fs/cgroup/memory/glovebox-1000".into(),
                controllers: [Controller::Memory].into(),
            }],
        }
    }

    #[test]
    fn version_one_gets_a_group_per_hierarchy_until_reboot() {
        let steps = plan_for(Some(&layout(Version::One)), false, 1000, 100).unwrap();
        assert_eq!(steps.len(), 1);
        assert_eq!(
            steps[0].describe(),
            "make the control group /sys/fs/cgroup/memory/glovebox-1000 and give it to user 1000 (until the next reboot)"
        );
    }

    #[test]
    fn version_two_is_passed_on_by_systemd_or_not_at_all() {
        let steps = plan_for(Some(&layout(Version::Two)), true, 1000, 100).unwrap();
        assert!(steps[0].describe().contains("Delegate=cpu memory pids"));
        assert_eq!(steps[1].describe(), "run `systemctl daemon-reload`");
        let error = plan_for(Some(&layout(Version::Two)), false, 1000, 100).unwrap_err();
        assert!(error.to_string().contains("systemd"), "{error}");
        assert!(plan_for(None, true, 1000, 100).is_err());
    }
}
