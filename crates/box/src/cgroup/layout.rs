//! Where on this machine control groups of ours can be made.
//!
//! Reads what the kernel says about mounts and about this process; changes nothing.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Which control group interface holds the controllers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// One hierarchy per controller.
    One,
    /// One hierarchy for all.
    Two,
}

impl Version {
    /// As a number.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

/// What a hierarchy can do for us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// Limits memory and swap.
    Memory,
    /// Limits the number of processes.
    Pids,
    /// Limits processor time.
    Cpu,
    /// Stops processes while they are killed. Version 1 only; version 2 can kill a group at once.
    Freezer,
}

impl Controller {
    /// The controllers that limit something.
    pub const LIMITING: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
            Self::Freezer => "freezer",
        }
    }
}

/// A hierarchy, and the folder in it below which pods are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Where the hierarchy is mounted.
    pub mount: PathBuf,
    /// The folder for pods. It may not exist yet.
    pub base: PathBuf,
    /// The controllers that this hierarchy has and that we use.
    pub controllers: BTreeSet<Controller>,
}

/// All places for control groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Which interface.
    pub version: Version,
    /// Version 1: one tree per hierarchy. Version 2: one, or none for an ordinary user's process
    /// that is in no scope of its own.
    pub trees: Vec<Tree>,
}

impl Layout {
    /// Finds the places for pods of user `uid` (0: the host's root).
    ///
    /// `mountinfo` is `/proc/self/mountinfo`, `own` is `/proc/self/cgroup`. `None` when no control
    /// groups with a controller of use are mounted.
    #[must_use]
    pub fn find(mountinfo: &str, own: &str, uid: u32) -> Option<Self> {
        let mounts: Vec<_> = mountinfo.lines().filter_map(Mount::parse).collect();
        let unified = mounts.iter().find(|mount| mount.kind == "cgroup2");
        let trees = version_one(&mounts, uid);
        if !trees.is_empty() {
            return Some(Self {
                version: Version::One,
                trees,
            });
        }
        let unified = unified?;
        let parent = if uid == 0 {
            Some(unified.point.clone())
        } else {
            own_scope(own).map(|scope| unified.point.join(scope))
        };
        let trees = parent.into_iter().map(|parent| Tree {
            mount: unified.point.clone(),
            base: parent.join(ROOT_BASE),
            controllers: Controller::LIMITING.into(),
        });
        Some(Self {
            version: Version::Two,
            trees: trees.collect(),
        })
    }

    /// Finds them for the user that runs this process.
    ///
    /// # Errors
    /// When the kernel's own files cannot be read.
    pub fn of_this_machine(uid: u32) -> std::io::Result<Option<Self>> {
        Ok(Self::find(
            &fs_err::read_to_string("/proc/self/mountinfo")?,
            &fs_err::read_to_string("/proc/self/cgroup")?,
            uid,
        ))
    }
}

/// The folder of root's pods, and of all pods on version 2.
const ROOT_BASE: &str = "glovebox";

/// The group, below a delegated one, into which its processes move so that it may have children
/// with controllers.
pub const SUPERVISOR: &str = "supervisor";

/// The folder that is prepared for a user on version 1.
#[must_use]
pub fn user_base(uid: u32) -> String {
    format!("{ROOT_BASE}-{uid}")
}

fn version_one(mounts: &[Mount<'_>], uid: u32) -> Vec<Tree> {
    let mut taken = BTreeSet::new();
    let mut trees = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.kind == "cgroup") {
        let controllers: BTreeSet<_> = mount
            .options
            .split(',')
            .filter_map(|option| {
                [Controller::Freezer]
                    .into_iter()
                    .chain(Controller::LIMITING)
                    .find(|controller| controller.name() == option)
            })
            .filter(|controller| !taken.contains(controller))
            .collect();
        if controllers.is_empty() {
            continue;
        }
        taken.extend(controllers.iter().copied());
        let base = if uid == 0 {
            mount.point.join(ROOT_BASE)
        } else {
            mount.point.join(user_base(uid))
        };
        trees.push(Tree {
            mount: mount.point.clone(),
            base,
            controllers,
        });
    }
    // The freezer alone limits nothing.
    if taken
        .iter()
        .any(|controller| *controller != Controller::Freezer)
    {
        trees
    } else {
        Vec::new()
    }
}

/// The scope that was made for this command by the user's systemd, by its name relative to the
/// mount: the one group whose processes are all ours, so that they may be moved and limited. What
/// else a user may own, a login's group or his systemd's, holds everything that he runs.
///
/// `own` is `/proc/self/cgroup`; the process may already be in a group below its scope.
#[must_use]
pub fn own_scope(own: &str) -> Option<PathBuf> {
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let parts: Vec<_> = path.split('/').collect();
    if parts.contains(&"..") {
        return None;
    }
    let scope = parts.iter().position(|part| is_scope(part))?;
    Some(parts[..=scope].iter().collect())
}

/// Whether a group is called `glovebox-NUMBER.scope`.
fn is_scope(name: &str) -> bool {
    let number = name
        .strip_prefix("glovebox-")
        .and_then(|rest| rest.strip_suffix(".scope"));
    number.is_some_and(|number| {
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

struct Mount<'a> {
    point: PathBuf,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// One line of mountinfo: see proc_pid_mountinfo(5).
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let point = left.split(' ').nth(4)?;
        let mut right = right.split(' ');
        let kind = right.next()?;
        let options = right.nth(1)?;
        Some(Self {
            point: unescape(point),
            kind,
            options,
        })
    }
}

/// Mountinfo writes spaces, tabs, line ends and backslashes as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let code = after
            .get(..3)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) if byte.is_ascii() => {
                out.push(char::from(byte));
                rest = &after[3..];
            }
            _ => {
                out.push('\\');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    PathBuf::from(out)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const HYBRID: &str = "\
25 20 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:23 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct
27 25 0:24 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
28 25 0:25 / /sys/fs/cgroup/freezer rw,relatime - cgroup cgroup rw,freezer
29 25 0:26 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
30 25 0:27 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
31 25 0:28 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";
    const UNIFIED: &str = "31 25 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn version_one_has_one_tree_per_hierarchy_of_use() {
        let layout = Layout::find(HYBRID, "", 1000).unwrap();
        assert_eq!(layout.version, Version::One);
        let bases: Vec<_> = layout
            .trees
            .iter()
            .map(|tree| tree.base.as_path())
            .collect();
        assert_eq!(
            bases,
            [
                Path::new("/sys/fs/cgroup/cpu,cpuacct/glovebox-1000"),
                Path::new("/sys/fs/cgroup/memory/glovebox-1000"),
                Path::new("/sys/fs/cgroup/freezer/glovebox-1000"),
                Path::new("/sys/fs/cgroup/pids/glovebox-1000"),
            ]
        );
        assert_eq!(
            Layout::find(HYBRID, "", 0).unwrap().trees[1].base,
            Path::new("/sys/fs/cgroup/memory/glovebox")
        );
    }

    #[test]
    fn version_two_is_used_where_version_one_has_no_controller() {
        let scope = "user.slice/user-1000.slice/user@1000.service/app.slice/glovebox-71.scope";
        for below in ["", "/supervisor", "/glovebox/7-run/box"] {
            let own = format!("0::/{scope}{below}\n");
            let layout = Layout::find(UNIFIED, &own, 1000).unwrap();
            assert_eq!(layout.version, Version::Two);
            let base = Path::new("/sys/fs/cgroup").join(scope).join("glovebox");
            assert_eq!(layout.trees[0].base, base);
        }
        assert_eq!(
            Layout::find(UNIFIED, "0::/\n", 0).unwrap().trees[0].base,
            Path::new("/sys/fs/cgroup/glovebox")
        );
    }

    #[test]
    fn a_group_that_was_not_made_for_us_is_left_alone() {
        for group in [
            "",
            "user.slice/user-1000.slice/session-3.scope",
            "user.slice/user-1000.slice/user@1000.service/init.scope",
            "user.slice/user-1000.slice/user@1000.service/app.slice/run-1.scope",
            "user.slice/user-1000.slice/user@1000.service/app.slice/glovebox-.scope",
            "user.slice/user-1000.slice/user@1000.service/app.slice/glovebox-7x.scope",
            "user.slice/user-1000.slice/session-3.scope/supervisor",
            "../glovebox-7.scope",
        ] {
            let layout = Layout::find(UNIFIED, &format!("0::/{group}\n"), 1000).unwrap();
            assert_eq!(
                (layout.version, layout.trees),
                (Version::Two, vec![]),
                "{group}"
            );
        }
    }

    #[test]
    fn a_machine_without_control_groups_has_no_layout() {
        assert_eq!(Layout::find("", "0::/\n", 0), None);
        let only_systemd = HYBRID.lines().nth(5).unwrap();
        assert_eq!(Layout::find(only_systemd, "", 0), None);
    }

    #[test]
    fn a_mount_point_with_a_space_is_read() {
        assert_eq!(unescape("/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(unescape("/a\\9x"), Path::new("/a\\9x"));
    }
}
