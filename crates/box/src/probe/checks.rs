//! What the findings mean, in words, with the fix.

use super::host::Host;
use super::trial::{Trials, What};
use super::{Check, Status};
use crate::launcher::machine::{KERNEL_FLOOR, parse_release};
use crate::weakness::Weakness;

/// Every check, in the order in which a person reads them.
pub(super) fn all(trials: &Trials, host: &Host) -> Vec<Check> {
    let mut checks = vec![kernel(trials), namespaces(trials, host), ids(trials)];
    checks.extend(steps(trials));
    checks.extend(groups(trials));
    checks.push(landlock(trials));
    checks.extend([core_pattern(host), vsock(host), ksm(host), smt(host)]);
    checks
}

fn check(id: &str, status: Status, message: impl Into<String>) -> Check {
    Check {
        id: id.to_owned(),
        status,
        message: message.into(),
        fix: None,
        weakness: None,
    }
}

impl Check {
    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    fn weakness(mut self, weakness: Weakness) -> Self {
        self.weakness = Some(weakness);
        self
    }
}

fn kernel(trials: &Trials) -> Check {
    let (major, minor) = KERNEL_FLOOR;
    if parse_release(&trials.kernel).is_some_and(|version| version >= KERNEL_FLOOR) {
        check("kernel", Status::Pass, format!("Linux {}", trials.kernel))
    } else {
        check(
            "kernel",
            Status::Fail,
            format!("Linux {} is older than {major}.{minor}", trials.kernel),
        )
        .fix("install a newer kernel of your distribution")
        .weakness(Weakness::OldKernel)
    }
}

/// What went wrong with a step; `None` when it was not tried.
fn outcome(trials: &Trials, what: What) -> Option<Option<&str>> {
    let mut steps = trials.steps.iter();
    steps
        .find(|trial| trial.what == what)
        .map(|trial| trial.error.as_deref())
}

fn namespaces(trials: &Trials, host: &Host) -> Check {
    let id = "user-namespaces";
    let made = outcome(trials, What::Namespaces);
    let mounted = outcome(trials, What::Mounts);
    let error = match (made, mounted) {
        (Some(None), Some(None)) => {
            return check(
                id,
                Status::Pass,
                "user namespaces work, and mounts can be made in them",
            );
        }
        (Some(Some(error)), _) => format!("user namespaces cannot be made: {error}"),
        (_, Some(Some(error))) => {
            format!("user namespaces can be made, but no mounts in them: {error}")
        }
        _ => match &trials.ids_fault {
            Some(fault) => format!("not tried, because {fault}"),
            None => "they could not be tried".to_owned(),
        },
    };
    let failed = check(id, Status::Fail, error);
    let is = |path: &str, value: &str| host.read(path).as_deref() == Some(value);
    if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        failed.fix(
            "AppArmor forbids them: give the launcher a profile with `userns,` in /etc/apparmor.d, or set kernel.apparmor_restrict_unprivileged_userns=0",
        )
    } else if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        failed.fix("sudo sysctl -w kernel.unprivileged_userns_clone=1")
    } else if is("/proc/sys/user/max_user_namespaces", "0") {
        failed.fix("sudo sysctl -w user.max_user_namespaces=15000")
    } else {
        failed.fix("in a container, run it with user namespaces allowed; otherwise see what your distribution's security module forbids")
    }
}

fn ids(trials: &Trials) -> Check {
    let id = "subordinate-ids";
    if let Some(fault) = &trials.ids_fault {
        return check(id, Status::Fail, fault.clone())
            .fix("choose another start of root's range of ids");
    }
    if trials.two_ids {
        return check(
            id,
            Status::Pass,
            "agent and workload have host ids of their own in every sandbox",
        );
    }
    let uid = trials.uid;
    check(
        id,
        Status::Warn,
        format!("user {uid} has no subordinate ids, or newuidmap is missing: agent and workload share one id"),
    )
    .fix(format!(
        "sudo apt-get install uidmap && sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 \"$(id -un {uid})\" (take a range that nobody has in /etc/subuid)"
    ))
}

fn steps(trials: &Trials) -> Vec<Check> {
    [
        (
            What::Tmpfs,
            "tmpfs",
            "file systems in memory work in user namespaces",
            "the kernel needs tmpfs in user namespaces",
        ),
        (
            What::Overlay,
            "overlay",
            "overlays work in user namespaces",
            "the kernel needs overlayfs (CONFIG_OVERLAY_FS; `sudo modprobe overlay`), and the data folder a local file system",
        ),
        (
            What::Proc,
            "proc",
            "a /proc of its own can be mounted",
            "the host's /proc is partly covered, as container engines do: run Glovebox outside of a container, or with an uncovered /proc",
        ),
        (
            What::Seccomp,
            "seccomp",
            "system calls can be filtered",
            "the kernel needs CONFIG_SECCOMP_FILTER",
        ),
    ]
    .into_iter()
    .map(|(what, id, works, fix)| match outcome(trials, what) {
        Some(None) => check(id, Status::Pass, works),
        Some(Some(error)) => check(id, Status::Fail, format!("does not work: {error}")).fix(fix),
        None => check(
            id,
            Status::Fail,
            "not tried, because namespaces do not work",
        ),
    })
    .collect()
}

fn groups(trials: &Trials) -> Vec<Check> {
    let version = trials.groups.version;
    [
        (
            Weakness::MemoryLimit,
            "cgroup-memory",
            "memory can be limited",
        ),
        (Weakness::SwapLimit, "cgroup-swap", "swap can be limited"),
        (
            Weakness::ProcessLimit,
            "cgroup-pids",
            "processes can be limited",
        ),
        (
            Weakness::CpuLimit,
            "cgroup-cpu",
            "processor time can be limited",
        ),
    ]
    .into_iter()
    .map(|(weakness, id, works)| {
        let mut missing = trials.groups.missing.iter();
        match missing.find(|(missing, _)| *missing == weakness) {
            None => check(
                id,
                Status::Pass,
                format!("{works} (control groups, version {version})"),
            ),
            Some((_, cause)) => check(id, Status::Fail, format!("no {weakness}: {cause}"))
                .fix(group_fix(trials, weakness))
                .weakness(weakness),
        }
    })
    .collect()
}

fn group_fix(trials: &Trials, weakness: Weakness) -> &'static str {
    match (trials.groups.version, trials.uid, weakness) {
        (1, _, Weakness::SwapLimit) => {
            "add swapaccount=1 to the kernel's command line and reboot, or switch swap off"
        }
        (1 | 2, 1.., _) => "sudo glovebox doctor --fix",
        (1 | 2, 0, _) => {
            "the control group file system must be writable; in a container, give it its own writable one"
        }
        _ => "mount the control group file system (cgroup2 on /sys/fs/cgroup)",
    }
}

fn landlock(trials: &Trials) -> Check {
    let id = "landlock";
    let abi = trials.landlock_abi;
    match (abi, outcome(trials, What::Landlock)) {
        (0, _) => check(id, Status::Fail, "the kernel has no Landlock")
            .fix("boot with lsm=landlock,… (CONFIG_SECURITY_LANDLOCK), or install a newer kernel")
            .weakness(Weakness::Landlock),
        (_, Some(Some(error))) => check(
            id,
            Status::Fail,
            format!("Landlock is there and does not take hold: {error}"),
        ),
        (1..6, _) => check(
            id,
            Status::Pass,
            format!(
                "Landlock, version {abi}: without scopes for signals and abstract sockets, as before \
                 Linux 6.12; namespaces keep sandboxes apart, but not templates from sandboxes"
            ),
        ),
        _ => check(
            id,
            Status::Pass,
            format!("Landlock, version {abi}, with scopes for signals and abstract sockets"),
        ),
    }
}

fn core_pattern(host: &Host) -> Check {
    let id = "core-pattern";
    match host.read("/proc/sys/kernel/core_pattern") {
        Some(pattern) if pattern.starts_with('|') => check(
            id,
            Status::Warn,
            format!(
                "a crash in a sandbox starts `{}` as the host's root",
                &pattern[1..]
            ),
        )
        .fix("sudo sysctl -w kernel.core_pattern=core"),
        _ => check(
            id,
            Status::Pass,
            "a crash in a sandbox starts no program of the host",
        ),
    }
}

fn vsock(host: &Host) -> Check {
    let message = if host.has("/dev/vsock") {
        "this machine has vsock; sandboxes cannot make such sockets"
    } else {
        "no vsock"
    };
    check("vsock", Status::Pass, message)
}

fn ksm(host: &Host) -> Check {
    let id = "ksm";
    match host.read("/sys/kernel/mm/ksm/run").as_deref() {
        Some("1") => check(
            id,
            Status::Warn,
            "the kernel merges equal memory of different processes, which can be measured from a sandbox",
        )
        .fix("echo 0 | sudo tee /sys/kernel/mm/ksm/run"),
        _ => check(id, Status::Pass, "equal memory is not merged"),
    }
}

fn smt(host: &Host) -> Check {
    let message = if host.read("/sys/devices/system/cpu/smt/active").as_deref() == Some("1") {
        "sibling threads share processor cores; sandboxes of different people may run on one core"
    } else {
        "no sibling threads share a processor core"
    };
    check("smt", Status::Pass, message)
}

#[cfg(test)]
mod tests;
