//! What the host has before and after: everything that a box could leave behind.

use std::collections::BTreeSet;
use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// A picture of the host, as far as it concerns processes and files of some ids.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Host {
    mounts: BTreeSet<String>,
    groups: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Host {
    /// Takes it for the ids of one pod: other tests run at the same time.
    pub(crate) fn look(ids: &Range<u32>) -> Self {
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
        Self {
            mounts: mounts.lines().map(str::to_owned).collect(),
            groups: groups(ids),
            processes: processes(ids),
        }
    }

    /// Looks until it is as it should be.
    pub(crate) fn settles(ids: &Range<u32>, is_right: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        loop {
            let host = Self::look(ids);
            if is_right(&host) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{host:?}");
            let moment = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 20_000_000,
            };
            rustix::event::poll(&mut [], Some(&moment)).unwrap();
        }
    }

    /// Processes of the pod.
    pub(crate) fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Control groups of the pod, its boxes not counted.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }
}

/// Control groups that belong to the ids.
fn groups(ids: &Range<u32>) -> BTreeSet<String> {
    folders(Path::new("/sys/fs/cgroup"))
        .iter()
        .flat_map(|tree| folders(Path::new(tree)))
        .filter(|base| base.contains("/glovebox"))
        .flat_map(|base| folders(Path::new(&base)))
        .filter(|pod| fs_err::metadata(pod).is_ok_and(|pod| ids.contains(&pod.uid())))
        .collect()
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

/// Processes that run under the ids.
fn processes(ids: &Range<u32>) -> BTreeSet<String> {
    fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let status = fs_err::read_to_string(entry.path().join("status")).ok()?;
            let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
            let uid = uid.split_whitespace().next()?.parse().ok()?;
            let name = status.lines().next()?;
            ids.contains(&uid)
                .then(|| format!("{} {name}", entry.file_name().display()))
        })
        .collect()
}
