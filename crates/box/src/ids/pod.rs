//! Which host ids the pod has, and writing its maps.

use std::path::Path;
use std::process::Command;

use rustix::process::{getegid, geteuid};

use super::subordinate::{self, Range};
use crate::control::Fault;

/// How many host ids root gives to the pod.
pub(crate) const ROOT_RANGE: u32 = 65_536;

/// Consecutive ids of the pod and the host ids behind them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    inside: u32,
    outside: Range,
}

/// The ids of a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PodIds {
    users: Vec<Extent>,
    groups: Vec<Extent>,
    writer: Writer,
}

/// Who may write the pod's maps.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Writer {
    /// This process, which is the host's root.
    Root,
    /// The two programs that are trusted with subordinate ids.
    Tools { users: String, groups: String },
    /// This process, for its own id alone.
    Own,
}

/// Where the programs that write maps of subordinate ids are looked for.
const TOOL_FOLDERS: [&str; 5] = [
    "/usr/bin",
    "/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/run/wrappers/bin",
];

impl PodIds {
    /// Decides for the user that runs this process.
    ///
    /// # Errors
    /// When root's range is taken, or the host's files cannot be read.
    pub(crate) fn decide(root_range_start: u32) -> Result<Self, Fault> {
        let uid = geteuid();
        if uid.is_root() {
            return Self::of_root(root_range_start);
        }
        let ranges = subordinate::of_user(uid.as_raw())
            .map_err(|error| Fault::failed("looking for subordinate ids", error))?;
        let tools = tool("newuidmap").zip(tool("newgidmap"));
        let own = |id| Extent {
            inside: 0,
            outside: Range {
                start: id,
                count: 1,
            },
        };
        let mut ids = Self {
            users: vec![own(uid.as_raw())],
            groups: vec![own(getegid().as_raw())],
            writer: Writer::Own,
        };
        if let (Some((users, groups)), Some((user_tool, group_tool))) = (ranges, tools) {
            ids.users.push(Extent {
                inside: 1,
                outside: users,
            });
            ids.groups.push(Extent {
                inside: 1,
                outside: groups,
            });
            ids.writer = Writer::Tools {
                users: user_tool,
                groups: group_tool,
            };
        }
        Ok(ids)
    }

    fn of_root(start: u32) -> Result<Self, Fault> {
        let doing = "choosing host ids for the pod";
        let range = Range {
            start,
            count: ROOT_RANGE,
        };
        let fix = "choose another start of root's range";
        // The last id of all stands for none.
        if start < ROOT_RANGE || start.checked_add(ROOT_RANGE).is_none() {
            return Err(Fault::invalid(
                doing,
                format!("{ROOT_RANGE} ids from {start} on are not all free of meaning"),
            )
            .with_fix(fix));
        }
        let taken = subordinate::overlap(range).map_err(|error| Fault::failed(doing, error))?;
        if let Some(taken) = taken {
            return Err(Fault::invalid(doing, taken).with_fix(fix));
        }
        let all = vec![Extent {
            inside: 0,
            outside: range,
        }];
        Ok(Self {
            users: all.clone(),
            groups: all,
            writer: Writer::Root,
        })
    }

    /// Whether agent and workload can have ids of their own.
    pub(crate) fn has_range(&self) -> bool {
        self.writer != Writer::Own
    }

    /// The highest id that exists in the pod for users and groups both.
    pub(crate) fn last(&self) -> u32 {
        let last = |extents: &[Extent]| {
            extents
                .iter()
                .map(|extent| extent.inside.saturating_add(extent.outside.count - 1))
                .max()
                .unwrap_or(0)
        };
        last(&self.users).min(last(&self.groups))
    }

    /// The host's user id behind an id of the pod.
    pub(crate) fn host_user(&self, inside: u32) -> Option<u32> {
        host(&self.users, inside)
    }

    /// The host's group id behind an id of the pod.
    pub(crate) fn host_group(&self, inside: u32) -> Option<u32> {
        host(&self.groups, inside)
    }

    /// Writes the maps of the process `pid`, which has just been cloned.
    ///
    /// # Errors
    /// What stands in the way.
    pub(crate) fn write_maps(&self, pid: i32) -> Result<(), Fault> {
        let proc = format!("/proc/{pid}");
        match &self.writer {
            Writer::Root => {
                write(&proc, "gid_map", &text(&self.groups))?;
                write(&proc, "uid_map", &text(&self.users))
            }
            Writer::Own => {
                write(&proc, "setgroups", "deny")?;
                write(&proc, "gid_map", &text(&self.groups))?;
                write(&proc, "uid_map", &text(&self.users))
            }
            Writer::Tools { users, groups } => {
                run_tool(groups, pid, &self.groups)?;
                run_tool(users, pid, &self.users)
            }
        }
    }
}

fn host(extents: &[Extent], inside: u32) -> Option<u32> {
    extents.iter().find_map(|extent| {
        let offset = inside.checked_sub(extent.inside)?;
        (offset < extent.outside.count).then(|| extent.outside.start + offset)
    })
}

fn text(extents: &[Extent]) -> String {
    use std::fmt::Write as _;
    extents.iter().fold(String::new(), |mut text, extent| {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} {} {}",
            extent.inside, extent.outside.start, extent.outside.count
        );
        text
    })
}

fn write(proc: &str, file: &str, text: &str) -> Result<(), Fault> {
    fs_err::write(format!("{proc}/{file}"), text)
        .map_err(|error| Fault::failed("writing the id maps of the pod", error))
}

fn tool(name: &str) -> Option<String> {
    TOOL_FOLDERS
        .iter()
        .map(|folder| format!("{folder}/{name}"))
        .find(|path| Path::new(path).is_file())
}

fn run_tool(tool: &str, pid: i32, extents: &[Extent]) -> Result<(), Fault> {
    let mut command = Command::new(tool);
    command.env_clear().arg(pid.to_string());
    for extent in extents {
        command
            .arg(extent.inside.to_string())
            .arg(extent.outside.start.to_string())
            .arg(extent.outside.count.to_string());
    }
    let doing = || format!("writing the id maps of the pod with {tool}");
    let output = command
        .output()
        .map_err(|error| Fault::failed(doing(), error))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(
            Fault::failed(doing(), String::from_utf8_lossy(&output.stderr).trim())
                .with_fix("run `glovebox doctor` to see what is wrong with the subordinate ids"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_user() -> PodIds {
        PodIds {
            users: vec![
                Extent {
                    inside: 0,
                    outside: Range {
                        start: 1000,
                        count: 1,
                    },
                },
                Extent {
                    inside: 1,
                    outside: Range {
                        start: 100_000,
                        count: 65_536,
                    },
                },
            ],
            groups: vec![Extent {
                inside: 0,
                outside: Range {
                    start: 1000,
                    count: 1,
                },
            }],
            writer: Writer::Own,
        }
    }

    #[test]
    fn ids_of_the_pod_lead_to_ids_of_the_host() {
        let ids = of_user();
        assert_eq!(ids.host_user(0), Some(1000));
        assert_eq!(ids.host_user(1), Some(100_000));
        assert_eq!(ids.host_user(65_536), Some(165_535));
        assert_eq!(ids.host_user(65_537), None);
        assert_eq!(ids.last(), 0, "groups have no range");
        assert_eq!(text(&ids.users), "0 1000 1\n1 100000 65536\n");
    }

    #[test]
    fn root_takes_no_ids_that_mean_something() {
        for start in [0, 1000, u32::MAX - 100] {
            assert!(PodIds::of_root(start).is_err(), "{start} was taken");
        }
    }
}
