//! What the kernel counts for a user, over all user namespaces that come from him: one box must
//! not use it up for the others, nor all boxes for the host.
//!
//! The kernel counts in every namespace on the way up, and each has limits of its own, which
//! whoever has the rights there may lower. Written through a whole `/proc`, which a box has as long
//! as it sees the host's: the files mean the namespace of whoever opens them.

use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::mount::{MountFlags, mount};

/// Watchers of files that one id of a box may have. The kernel's usual limit for a user of the
/// host is 128.
const INSTANCES: u64 = 16;

/// What they may watch together, for one id of a box.
const WATCHES: u64 = 8192;

/// Limits the box of which this is the first process.
///
/// Through a `/proc` of its own, which goes with the host's tree: in one `/proc` the files of all
/// user namespaces have one name, and the kernel looks through all of them to find the right one,
/// which with a thousand boxes takes it two milliseconds.
pub(crate) fn limit_box() -> Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount(c"proc", c"/proc", c"proc", flags, None)?;
    write("max_inotify_instances", INSTANCES)?;
    write("max_inotify_watches", WATCHES)
}

/// Limits all boxes of the pod of which this is the first process: half of what the host lets a
/// user have is left to the user.
pub(crate) fn limit_pod() -> Result<()> {
    for (file, host) in [
        ("max_inotify_instances", "max_user_instances"),
        ("max_inotify_watches", "max_user_watches"),
    ] {
        let host = read(&format!("/proc/sys/fs/inotify/{host}"))?;
        write(file, (host / 2).max(1))?;
    }
    Ok(())
}

fn write(file: &str, value: u64) -> Result<()> {
    let path = format!("/proc/sys/user/{file}");
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(&file, value.to_string().as_bytes()).map(drop)
}

fn read(path: &str) -> Result<u64> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = [0; 32];
    let count = rustix::io::read(&file, &mut text)?;
    let text = std::str::from_utf8(&text[..count]).map_err(|_| Errno::INVAL)?;
    text.trim().parse().map_err(|_| Errno::INVAL)
}
