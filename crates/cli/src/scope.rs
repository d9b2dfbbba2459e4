//! A control group of this command's own, for an ordinary user on cgroups of version 2.
//!
//! There, systemd owns the groups of users, and the one in which a shell runs is no place for
//! sandboxes: either it is not the user's, or everything that the user started is in it. So the
//! command starts itself once more in a scope that the user's systemd makes for it and hands over
//! to it. This module decides whether that is needed and with which command line; what is done in
//! the scope is the launcher's business.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use glovebox_box::cgroup::layout::{Layout, Version, own_scope};
use glovebox_box::weakness::Weakness;
use glovebox_protocol::error::ErrorCode;

use crate::environment::Environment;
use crate::failure::Failure;

/// The variable that says which process has asked for a scope already: programs started in place
/// of others keep their number.
pub(crate) const ASKED: &str = "GLOVEBOX_SCOPE";

/// What depends on a scope.
const LIMITS: [Weakness; 3] = [
    Weakness::MemoryLimit,
    Weakness::CpuLimit,
    Weakness::ProcessLimit,
];

/// What the decision depends on.
#[derive(Debug, Clone)]
struct Facts<'a> {
    user_id: u32,
    /// This process.
    pid: u32,
    /// `/proc/self/mountinfo`.
    mountinfo: &'a str,
    /// `/proc/self/cgroup`.
    own_group: &'a str,
    /// Whether this process has asked for a scope before.
    asked: bool,
    /// Where `systemd-run` is.
    systemd_run: Option<PathBuf>,
    /// The folder through which the user's systemd can be reached (`XDG_RUNTIME_DIR`).
    manager: Option<PathBuf>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Decision {
    /// Groups are no matter of a scope, or there is one.
    Stay,
    /// Start again: through this program, with these arguments in front of the own command line,
    /// and this `XDG_RUNTIME_DIR`.
    Enter {
        program: PathBuf,
        arguments: Vec<OsString>,
        runtime_dir: PathBuf,
    },
    /// A scope is needed and cannot be had.
    Lacking(Lack),
}

/// Why there is no scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    /// `systemd-run` is not installed.
    Program,
    /// No systemd runs for this user.
    Manager,
    /// `systemd-run` said that it made a scope, and this process is in none.
    NotEntered,
    /// `systemd-run` could not be started, or `/proc` could not be read.
    Broken,
}

impl Lack {
    /// The failure of a command that makes sandboxes; none where it was accepted that nothing is
    /// limited.
    pub(crate) fn refusal(self, accepted: &[Weakness]) -> Option<Failure> {
        if LIMITS.iter().all(|limit| accepted.contains(limit)) {
            return None;
        }
        let (problem, fix) = match self {
            Self::Program => (
                "systemd-run is not there",
                "install systemd, or run Glovebox as root",
            ),
            Self::Manager => (
                "no systemd runs for this user",
                "log in as this user, on a terminal or by ssh, or let its systemd always run with \
                 `sudo loginctl enable-linger USER`",
            ),
            Self::NotEntered => (
                "systemd-run has started this command outside of the scope that it was to make",
                "`systemctl --user status` says how this user's systemd is",
            ),
            Self::Broken => (
                "systemd-run could not be started",
                "`systemctl --user status` says how this user's systemd is",
            ),
        };
        let accept: Vec<_> = LIMITS
            .iter()
            .map(|limit| format!("--accept-weaker={limit}"))
            .collect();
        Some(Failure::Machine {
            doing: "getting a control group, without which nothing limits a sandbox".into(),
            fix: Some(format!("{fix}; or go without limits: {}", accept.join(" "))),
            code: ErrorCode::CapabilityMissing,
            cause: Some(problem.into()),
        })
    }
}

fn decide(facts: &Facts<'_>) -> Decision {
    // As root sees it: where an ordinary user's groups are is what this is about.
    let version = Layout::find(facts.mountinfo, facts.own_group, 0).map(|layout| layout.version);
    if facts.user_id == 0 || version != Some(Version::Two) || own_scope(facts.own_group).is_some() {
        return Decision::Stay;
    }
    if facts.asked {
        return Decision::Lacking(Lack::NotEntered);
    }
    let Some(program) = &facts.systemd_run else {
        return Decision::Lacking(Lack::Program);
    };
    let Some(runtime_dir) = &facts.manager else {
        return Decision::Lacking(Lack::Manager);
    };
    let unit = format!("--unit=glovebox-{}.scope", facts.pid);
    let arguments = [
        "--user",
        "--scope",
        "--quiet",
        &unit,
        "-p",
        "Delegate=yes",
        "--",
    ];
    Decision::Enter {
        program: program.clone(),
        arguments: arguments.map(OsString::from).into(),
        runtime_dir: runtime_dir.clone(),
    }
}

/// The command that starts this one again in a scope.
fn again(
    (program, arguments): (&Path, &[OsString]),
    runtime_dir: &Path,
    own: &Path,
    own_arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    pid: u32,
) -> Command {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(own)
        .args(own_arguments)
        .env("XDG_RUNTIME_DIR", runtime_dir)
        .env(ASKED, pid.to_string());
    command
}

/// Puts this command into a scope of its own where that is needed: then it starts anew, and this
/// does not return. To be called before anything else is done.
///
/// # Errors
/// When a scope is needed and cannot be had. What needs no limits works all the same.
pub(crate) fn enter(environment: &Environment) -> Result<(), Lack> {
    let read = |path| fs_err::read_to_string(path).map_err(|_| Lack::Broken);
    let (mountinfo, own_group) = (read("/proc/self/mountinfo")?, read("/proc/self/cgroup")?);
    let pid = std::process::id();
    let facts = Facts {
        user_id: environment.user_id,
        pid,
        mountinfo: &mountinfo,
        own_group: &own_group,
        asked: environment.asked_for_scope == Some(pid),
        systemd_run: find_program("systemd-run", &environment.path),
        manager: manager(environment),
    };
    match decide(&facts) {
        Decision::Stay => Ok(()),
        Decision::Lacking(lack) => Err(lack),
        Decision::Enter {
            program,
            arguments,
            runtime_dir,
        } => {
            let own = std::env::current_exe().map_err(|_| Lack::Broken)?;
            let own_arguments = std::env::args_os().skip(1);
            let mut command = again(
                (&program, &arguments),
                &runtime_dir,
                &own,
                own_arguments,
                pid,
            );
            // Returns only when it fails.
            let _ = command.exec();
            Err(Lack::Broken)
        }
    }
}

fn find_program(name: &str, search: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(search)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// The folder through which the user's systemd is reached, where one runs. A shell that was not
/// logged into (`su`, a timer) does not name it.
fn manager(environment: &Environment) -> Option<PathBuf> {
    let usual = PathBuf::from(format!("/run/user/{}", environment.user_id));
    environment
        .runtime_dir
        .iter()
        .chain([&usual])
        .find(|folder| folder.join("systemd/private").exists())
        .cloned()
}

#[cfg(test)]
mod tests;
