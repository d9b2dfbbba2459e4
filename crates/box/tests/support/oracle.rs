//! What the host has before and after: everything that a box could leave behind.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What belongs to one launcher, whoever runs it: other tests run at the same time.
#[derive(Debug, Clone)]
pub(crate) struct Pod {
    /// Host ids that its processes have, where they have their own.
    pub ids: Range<u32>,
    /// The folders of control groups in which it makes its own, one for each hierarchy.
    pub bases: Vec<PathBuf>,
    /// The name of its run folder, in which the names of its control groups end.
    pub run: String,
    /// The outer process.
    pub launcher: u32,
}

/// A picture of the host, as far as it concerns one pod.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Host {
    mounts: BTreeSet<String>,
    groups: BTreeSet<String>,
    processes: BTreeSet<String>,
}

impl Host {
    /// Takes it.
    pub(crate) fn look(pod: &Pod) -> Self {
        let mounts = fs_err::read_to_string("/proc/self/mountinfo").unwrap();
        Self {
            // Container engines mount in this machine's own namespace; a box never does.
            mounts: mounts
                .lines()
                .filter(|line| !line.contains("/docker/"))
                .map(str::to_owned)
                .collect(),
            groups: groups(pod),
            processes: processes(pod).into_values().collect(),
        }
    }

    /// Looks until it is as it should be.
    pub(crate) fn settles(pod: &Pod, is_right: impl Fn(&Self) -> bool) {
        let start = Instant::now();
        loop {
            let host = Self::look(pod);
            if is_right(&host) {
                return;
            }
            assert!(start.elapsed() < Duration::from_secs(10), "{host:?}");
            moment();
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

/// Lets a moment pass before something is looked at again.
pub(crate) fn moment() {
    let moment = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    rustix::event::poll(&mut [], Some(&moment)).unwrap();
}

/// Control groups of the pod.
fn groups(pod: &Pod) -> BTreeSet<String> {
    pod.bases
        .iter()
        .filter_map(|base| fs_err::read_dir(base).ok())
        .flat_map(|pods| pods.flatten())
        .filter(|folder| folder.file_name().to_string_lossy().ends_with(&pod.run))
        .map(|folder| folder.path().display().to_string())
        .collect()
}

/// Processes of the pod, by number: those with its ids or in its groups, and what its outer
/// process has started.
pub(crate) fn processes(pod: &Pod) -> BTreeMap<u32, String> {
    let of_pod = |pid: u32| {
        let read = |file: &str| fs_err::read_to_string(format!("/proc/{pid}/{file}")).ok();
        let status = read("status")?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u32>().ok()
        };
        let belongs = pod.ids.contains(&number("Uid:")?)
            || number("PPid:")? == pod.launcher
            || read("cgroup")?.contains(&pod.run);
        belongs.then(|| {
            (
                pid,
                format!("{pid} {}", status.lines().next().unwrap_or_default()),
            )
        })
    };
    fs_err::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| of_pod(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}
