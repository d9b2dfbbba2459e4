//! The host before and after: what a sandbox could leave behind, written down so that two
//! moments can be compared.
//!
//! It sees all of the machine, so a test that uses it has to run alone: `.config/nextest.toml`
//! runs tests with `leaves_the_host_as_it_was` in their names that way.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Namespaces in which a process can be, as `/proc/PID/ns` calls them.
const NAMESPACES: [&str; 7] = ["cgroup", "ipc", "mnt", "net", "pid", "user", "uts"];

/// How lines begin of things that end by themselves.
const TRANSIENT: [&str; 3] = ["process ", "namespace ", "control group "];

/// What of the host a sandbox could change, at one moment.
///
/// Each thing is one line of text, so that a difference reads as what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostSnapshot {
    lines: BTreeSet<String>,
}

impl HostSnapshot {
    /// Writes down: processes of Glovebox's and processes in other namespaces than the test's,
    /// those namespaces, mounts, control groups named after Glovebox, and everything below
    /// `folders` (kind, mode, owner and size; links are not followed).
    ///
    /// # Errors
    /// When the system cannot be read. What ends while it is read is left out.
    pub fn take(folders: &[&Path]) -> Result<Self> {
        let mut lines = BTreeSet::new();
        processes(&mut lines)?;
        mounts(&mut lines)?;
        control_groups(Path::new("/sys/fs/cgroup"), &mut lines);
        for folder in folders {
            files(folder, &mut lines)
                .with_context(|| format!("writing down what is in {}", folder.display()))?;
        }
        Ok(Self { lines })
    }

    /// What a later snapshot has more (`+`) and less (`-`) than this one, a line each; empty when
    /// they are the same. Processes, namespaces and control groups that are gone do not count:
    /// what an earlier test has left to end by itself may end meanwhile.
    #[must_use]
    pub fn changes_until(&self, later: &Self) -> Vec<String> {
        let gone = self
            .lines
            .difference(&later.lines)
            .filter(|line| !TRANSIENT.iter().any(|kind| line.starts_with(kind)))
            .map(|l| format!("- {l}"));
        let new = later
            .lines
            .difference(&self.lines)
            .map(|l| format!("+ {l}"));
        gone.chain(new).collect()
    }
}

fn processes(lines: &mut BTreeSet<String>) -> Result<()> {
    let own = namespaces_of(Path::new("/proc/self"));
    for entry in fs_err::read_dir("/proc")? {
        let path = entry?.path();
        let is_process = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        // Whatever cannot be read has ended by now, or is a kernel thread.
        let Some(name) = is_process
            .then(|| fs_err::read_to_string(path.join("comm")).ok())
            .flatten()
        else {
            continue;
        };
        let foreign: Vec<_> = namespaces_of(&path)
            .into_iter()
            .filter(|namespace| !own.contains(namespace))
            .collect();
        if name.starts_with("glovebox") || !foreign.is_empty() {
            lines.insert(format!("process {} {}", path.display(), name.trim_end()));
        }
        lines.extend(foreign.into_iter().map(|ns| format!("namespace {ns}")));
    }
    Ok(())
}

fn namespaces_of(process: &Path) -> BTreeSet<String> {
    NAMESPACES
        .iter()
        .filter_map(|kind| fs_err::read_link(process.join("ns").join(kind)).ok())
        .map(|link| link.display().to_string())
        .collect()
}

fn mounts(lines: &mut BTreeSet<String>) -> Result<()> {
    let table = fs_err::read_to_string("/proc/self/mountinfo")?;
    // The first two fields are numbers that are handed out anew; the rest is what is mounted.
    lines.extend(table.lines().map(|line| {
        let rest: Vec<_> = line.split(' ').skip(2).collect();
        format!("mount {}", rest.join(" "))
    }));
    Ok(())
}

fn control_groups(folder: &Path, lines: &mut BTreeSet<String>) {
    // Groups of others come and go while they are read.
    let Ok(entries) = fs_err::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if path.to_string_lossy().contains("glovebox") {
                lines.insert(format!("control group {}", path.display()));
            }
            control_groups(&path, lines);
        }
    }
}

fn files(folder: &Path, lines: &mut BTreeSet<String>) -> Result<()> {
    let mut left: Vec<PathBuf> = vec![folder.to_path_buf()];
    while let Some(path) = left.pop() {
        let facts = fs_err::symlink_metadata(&path)?;
        // A folder's size says nothing but what its entries say.
        let size = if facts.is_dir() { 0 } else { facts.size() };
        lines.insert(format!(
            "file {:o} {}:{} {size} {}",
            facts.mode(),
            facts.uid(),
            facts.gid(),
            path.display()
        ));
        if facts.is_dir() {
            for entry in fs_err::read_dir(&path)? {
                left.push(entry?.path());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_left_behind_shows() {
        let folder = tempfile::tempdir().unwrap();
        let before = HostSnapshot::take(&[folder.path()]).unwrap();
        fs_err::write(folder.path().join("left"), "behind").unwrap();
        let after = HostSnapshot::take(&[folder.path()]).unwrap();
        let changes = before.changes_until(&after);
        assert!(
            changes
                .iter()
                .any(|c| c.starts_with("+ file") && c.ends_with("/left")),
            "{changes:?}"
        );
    }

    #[test]
    fn a_process_in_a_namespace_of_its_own_shows() {
        let before = HostSnapshot::take(&[]).unwrap();
        let mut child = std::process::Command::new("unshare")
            .args(["--user", "--net", "cat"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // When a byte has come back the program runs in its namespaces.
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"x").unwrap();
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        let during = HostSnapshot::take(&[]).unwrap();
        drop(child.stdin.take());
        child.wait().unwrap();
        let changes = before.changes_until(&during);
        assert!(
            changes.iter().any(|c| c.contains("namespace net:")),
            "{changes:?}"
        );
        assert!(changes.iter().any(|c| c.ends_with(" cat")), "{changes:?}");
    }
}
