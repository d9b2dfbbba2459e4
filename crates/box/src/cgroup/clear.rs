//! Emptying and removing groups.

use std::path::Path;
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use super::group::{AGENT, WORK};
use super::layout::Version;
use super::{CgroupError, files, on};

/// Kills every process in a group and below it and removes it with the leaves in it, by
/// `deadline`.
///
/// # Errors
/// When processes stay, or a folder cannot be removed.
pub(super) fn remove(
    version: Version,
    folder: &Path,
    deadline: Instant,
) -> Result<(), CgroupError> {
    loop {
        match try_remove(version, folder) {
            Err(error) if error.is_passing() && Instant::now() < deadline => pause(),
            other => return other,
        }
    }
}

/// The same, as far as it can be done without waiting.
///
/// # Errors
/// When processes stay, or a folder cannot be removed. What [`CgroupError::is_passing`] is to be
/// tried again a moment later.
pub(super) fn try_remove(version: Version, folder: &Path) -> Result<(), CgroupError> {
    for part in [folder.join(AGENT), folder.join(WORK), folder.to_owned()] {
        match files::remove_folder(&part) {
            Ok(()) => {}
            Err(error) if is_gone(&error) => {}
            Err(error) => {
                let pids = processes_below(folder)?;
                if pids.is_empty() {
                    return Err(on("removing the control group", &part)(error));
                }
                kill_all(version, folder, &pids);
                return Err(CgroupError::NotEmpty {
                    path: folder.to_owned(),
                });
            }
        }
    }
    Ok(())
}

fn kill_all(version: Version, group: &Path, pids: &[i32]) {
    if version == Version::Two && files::write(&group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    // Stopped processes make no new ones while they are killed; a kill takes effect at the thaw.
    let freezer = group.join("freezer.state");
    let frozen = freezer.exists() && files::write(&freezer, "FROZEN").is_ok();
    for pid in pids.iter().filter_map(|pid| Pid::from_raw(*pid)) {
        // One that has gone meanwhile is what we want.
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
    if frozen {
        // If this fails the processes stay, and the next attempt says so.
        let _ = files::write(&freezer, "THAWED");
    }
}

fn processes_below(group: &Path) -> Result<Vec<i32>, CgroupError> {
    let mut pids = Vec::new();
    for folder in [group.to_owned(), group.join(AGENT), group.join(WORK)] {
        let procs = folder.join("cgroup.procs");
        match files::read(&procs) {
            Ok(text) => pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok())),
            Err(error) if is_gone(&error) => {}
            Err(error) => return Err(on("reading", &procs)(error)),
        }
    }
    Ok(pids)
}

fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::NODEV.raw_os_error())
}

/// Gives the kernel a moment. Version 1 has no event for a group that becomes empty.
fn pause() {
    let moment = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 500_000,
    };
    // Being woken early only means looking again early.
    let _ = rustix::event::poll(&mut [], Some(&moment));
}
