//! A process that this one has cloned: what it is called outside, and its end.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};

use crate::control::Fault;
use crate::sys::clone::Cloned;

/// How long a killed process is given to end.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What the host's `/proc` calls a process of ours. Its numbers are not the pod's, and the
/// description of the descriptor is written for whoever mounted `/proc`.
pub(crate) fn host_pid(process: &Cloned) -> Result<i32, Fault> {
    let doing = "finding a process of ours";
    let path = format!("/proc/self/fdinfo/{}", process.pidfd.as_raw_fd());
    let text = fs_err::read_to_string(path).map_err(|error| Fault::failed(doing, error))?;
    text.lines()
        .find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
        .filter(|pid| *pid > 0)
        .ok_or_else(|| Fault::failed(doing, "/proc does not show it"))
}

/// Kills a process. Of a box's first one, the kernel ends every other process of the box too, and
/// before it.
pub(crate) fn kill(process: &Cloned) -> Result<(), Fault> {
    match pidfd_send_signal(&process.pidfd, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(Fault::failed("killing a process of ours", error)),
    }
}

/// Takes the end of a process, if it has come. `false` while it lives.
pub(crate) fn reap(process: &Cloned) -> Result<bool, Fault> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    match waitid(WaitId::PidFd(process.pidfd.as_fd()), options) {
        Ok(None) | Err(Errno::INTR) => Ok(false),
        Ok(Some(_)) | Err(Errno::CHILD) => Ok(true),
        Err(error) => Err(Fault::failed("waiting for a process to end", error)),
    }
}

/// Kills a process and waits for its end.
pub(crate) fn end(process: &Cloned) -> Result<(), Fault> {
    kill(process)?;
    wait_for_exit(process)
}

/// Waits for the end of a process that was told to end, or is bound to.
pub(crate) fn wait_for_exit(process: &Cloned) -> Result<(), Fault> {
    let failed = |error: Errno| Fault::failed("waiting for a process to end", error);
    let deadline = Instant::now() + END_PATIENCE;
    while !reap(process)? {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(|_| failed(Errno::INVAL))?;
        let mut fds = [PollFd::new(&process.pidfd, PollFlags::IN)];
        match poll(&mut fds, Some(&left)) {
            Ok(0) => return Err(failed(Errno::TIMEDOUT)),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}
