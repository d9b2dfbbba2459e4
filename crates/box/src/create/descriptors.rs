//! Which descriptors the agent starts with, and under which numbers.

use std::os::fd::{AsFd, OwnedFd, RawFd};

use glovebox_protocol::agent_config::{AgentFds, OomEvents};
use rustix::fs::{Mode, OFlags};
use rustix::io::{Result, fcntl_dupfd_cloexec};

use crate::mutation::{Mutation, Omissions};
use crate::sys::descriptors::{close_from, place};

/// The listening socket's number; 0 is the configuration, 1 goes nowhere, 2 to the launcher.
const LISTENER: RawFd = 3;
/// The line to the launcher.
const LINE: RawFd = 4;
const FIRST_FREE: RawFd = 5;

/// Descriptors are moved up here before they are put in place, so that none is in another's way.
const ASIDE: RawFd = 64;

/// The numbers that the agent is told, given how many control groups there are.
pub(crate) fn numbers(groups: usize, has_oom_events: bool) -> AgentFds {
    let first_group = FIRST_FREE + RawFd::from(has_oom_events);
    let groups = RawFd::try_from(groups).unwrap_or(0);
    AgentFds {
        listener: LISTENER,
        launcher: Some(LINE),
        workload_cgroups: (first_group..first_group + groups).collect(),
        oom_events: has_oom_events.then_some(OomEvents { fd: FIRST_FREE }),
    }
}

/// What the agent starts with.
pub(crate) struct Inheritance {
    pub(crate) config: OwnedFd,
    pub(crate) words: OwnedFd,
    pub(crate) listener: OwnedFd,
    pub(crate) line: OwnedFd,
    pub(crate) oom_events: Option<OwnedFd>,
    pub(crate) groups: Vec<OwnedFd>,
}

/// Puts everything in its place and closes all else but `report`, which `exec` closes.
///
/// The standard output is the box's own `/dev/null`, so that no file of the host is open in it.
pub(crate) fn arrange(
    inheritance: Inheritance,
    report: &mut OwnedFd,
    omissions: &Omissions,
) -> Result<()> {
    let nowhere = rustix::fs::open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut wanted = vec![
        inheritance.config,
        nowhere,
        inheritance.words,
        inheritance.listener,
        inheritance.line,
    ];
    wanted.extend(inheritance.oom_events);
    wanted.extend(inheritance.groups);
    let aside = wanted
        .iter()
        .map(|fd| fcntl_dupfd_cloexec(fd, ASIDE))
        .collect::<Result<Vec<_>>>()?;
    let reporting = fcntl_dupfd_cloexec(&*report, ASIDE)?;
    // From here on the numbers below `ASIDE` belong to nobody: these owners must not close them.
    std::mem::forget(wanted);
    let mut next = 0;
    for fd in &aside {
        place(fd.as_fd(), next).map_err(errno)?;
        next += 1;
    }
    let report_number = next;
    place(reporting.as_fd(), report_number).map_err(errno)?;
    if omissions.omits(Mutation::CloseDescriptors) {
        // Everything else here closes itself at `exec`, so something has to be left open.
        for fd in &aside {
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
        }
    }
    std::mem::forget(aside);
    std::mem::forget(reporting);
    let taken = crate::sys::descriptors::inherited(report_number).map_err(errno)?;
    rustix::io::fcntl_setfd(&taken, rustix::io::FdFlags::CLOEXEC)?;
    std::mem::forget(std::mem::replace(report, taken));
    if omissions.omits(Mutation::CloseDescriptors) {
        return Ok(());
    }
    close_from(report_number + 1).map_err(errno)
}

fn errno(error: std::io::Error) -> rustix::io::Errno {
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_each_other_without_a_gap() {
        let fds = numbers(2, true);
        assert_eq!(fds.listener, 3);
        assert_eq!(fds.launcher, Some(4));
        assert_eq!(fds.oom_events, Some(OomEvents { fd: 5 }));
        assert_eq!(fds.workload_cgroups, [6, 7]);
        let fds = numbers(0, false);
        assert_eq!(fds.oom_events, None);
        assert_eq!(fds.workload_cgroups, Vec::<RawFd>::new());
    }
}
