//! What the host has before and after: everything that a box could leave behind.

use std::collections::BTreeSet;
use std::path::Path;

/// A picture of the host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Host {
    mounts: BTreeSet<String>,
    groups: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Host {
    /// Takes it.
    pub(crate) fn look() -> Self {
        Self {
            mounts: fs_err::read_to_string("/proc/self/mountinfo")
                .unwrap()
                .lines()
                .map(str::to_owned)
                .collect(),
            groups: groups(),
            processes: processes(),
        }
    }
}

/// Control groups of ours.
fn groups() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Ok(trees) = fs_err::read_dir("/sys/fs/cgroup") else {
        return found;
    };
    for tree in trees.flatten() {
        for base in folders(&tree.path()) {
            let name = Path::new(&base)
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            if name.starts_with("glovebox") {
                found.extend(folders(Path::new(&base)));
            }
        }
    }
    found
}

fn folders(path: &Path) -> Vec<String> {
    fs_err::read_dir(path)
        .map(|entries| {
            entries
                .flatten()
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path().display().to_string())
                .collect()
        })
        .unwrap_or_default()
}

/// Processes of boxes: everything whose program is an agent or a launcher.
fn processes() -> BTreeSet<String> {
    fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let name = fs_err::read_to_string(entry.path().join("comm")).ok()?;
            name.starts_with("glovebox")
                .then(|| format!("{} {}", entry.file_name().display(), name.trim()))
        })
        .collect()
}
