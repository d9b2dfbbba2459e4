//! What can be seen inside a box: its root, its three writable folders, a few devices, `/proc`.
//!
//! Works in the mount namespace of a box that is coming into being. All targets are relative to
//! the working folder, which is the new root from [`root`] on. A target is opened without
//! following links and mounted on as what was opened: a layer in which a link lies in its place
//! would otherwise send the mount over a folder of the host.

use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd as _, OwnedFd};

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::limits::Limits;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, Result};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
};

use crate::mutation::{Mutation, Omissions};
use crate::sys::mount_attributes::add_mount_attributes;

/// The empty folder in the data folder on which every box mounts its root, in a mount namespace
/// of its own.
pub(crate) const MOUNT_POINT: &str = "mount-point";

/// Devices of the host that a box has.
const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// Links in `/dev` that programs expect.
const LINKS: [(&str, &str); 4] = [
    ("dev/fd", "/proc/self/fd"),
    ("dev/stdin", "/proc/self/fd/0"),
    ("dev/stdout", "/proc/self/fd/1"),
    ("dev/stderr", "/proc/self/fd/2"),
];

/// What tmpfs calls itself in the list of mounts.
const SOURCE: &CStr = c"glovebox";

/// Keeps mounts of the box from the host, and the other way round.
pub(crate) fn cut_off() -> Result<()> {
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
}

/// Mounts the layers, given relative to the working folder, and makes them the working folder.
///
/// The classic call is used because it takes a list of any length, and because it resolves and
/// shows the names as they are given: no path of the host is seen in the box.
pub(crate) fn root(layers: &CStr, omissions: &Omissions) -> Result<()> {
    let flags = if omissions.omits(Mutation::RootFlags) {
        MountFlags::RDONLY
    } else {
        MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV
    };
    let target = target(MOUNT_POINT)?;
    mount(SOURCE, path(&target), c"overlay", flags, Some(layers))?;
    // The name means the new mount now; it was a plain folder when it was opened.
    rustix::process::chdir(MOUNT_POINT)
}

/// A folder to mount on.
///
/// # Errors
/// `ENOTDIR` when it is a link or a file.
fn target(name: &str) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(name, flags, Mode::empty())
}

/// The name under which the kernel's older calls take an open folder.
fn path(target: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", target.as_raw_fd())
}

/// The option string of the root mount.
pub(crate) fn layers_option(layers: &[String]) -> std::result::Result<CString, std::ffi::NulError> {
    CString::new(format!("lowerdir={},userxattr", layers.join(":")))
}

/// Mounts the workspace, which belongs to the workload.
pub(crate) fn workspace(limits: &Limits, owner: u32, omissions: &Omissions) -> Result<()> {
    let size = if omissions.omits(Mutation::WorkspaceSize) {
        0
    } else {
        limits.workspace_bytes
    };
    let inodes = if omissions.omits(Mutation::WorkspaceInodes) {
        0
    } else {
        // The folder itself takes one.
        limits.workspace_inodes.saturating_add(1)
    };
    let flags = writable(omissions.omits(Mutation::WorkspaceFlags));
    tmpfs(
        "workspace",
        flags,
        &format!("size={size},nr_inodes={inodes},mode=700,uid={owner},gid={owner}"),
    )
}

/// Mounts `/tmp`.
pub(crate) fn tmp(limits: &Limits, agent: u32, omissions: &Omissions) -> Result<()> {
    shared_folder(
        "tmp",
        writable(omissions.omits(Mutation::TmpFlags)),
        limits.tmp_bytes,
        agent,
    )
}

/// Mounts `/dev/shm`. After [`devices`], which closes `/dev`.
pub(crate) fn shared_memory(limits: &Limits, agent: u32, omissions: &Omissions) -> Result<()> {
    let flags = if omissions.omits(Mutation::ShmFlags) {
        MountFlags::empty()
    } else {
        writable(false) | MountFlags::NOEXEC
    };
    shared_folder("dev/shm", flags, limits.shm_bytes, agent)
}

fn writable(omitted: bool) -> MountFlags {
    if omitted {
        MountFlags::empty()
    } else {
        MountFlags::NOSUID | MountFlags::NODEV
    }
}

/// Bytes of a shared folder for each file that it may hold.
const BYTES_PER_INODE: u64 = 4096;

fn shared_folder(target: &str, flags: MountFlags, bytes: u64, owner: u32) -> Result<()> {
    let inodes = (bytes / BYTES_PER_INODE).max(1024);
    tmpfs(
        target,
        flags,
        &format!("size={bytes},nr_inodes={inodes},mode=1777,uid={owner},gid={owner}"),
    )
}

/// Fills `/dev` and closes it for writing, the device nodes in it included.
pub(crate) fn devices(agent: u32, omissions: &Omissions) -> Result<()> {
    tmpfs(
        "dev",
        MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC,
        &format!("size=64k,nr_inodes=64,mode=755,uid={agent},gid={agent}"),
    )?;
    for name in DEVICES {
        let target = format!("dev/{name}");
        rustix::fs::open(
            target.as_str(),
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o444),
        )?;
        // In a file system that was made a moment ago: nothing is planted there.
        mount_bind(format!("/dev/{name}"), target)?;
    }
    for (link, target) in LINKS {
        rustix::fs::symlink(target, link)?;
    }
    rustix::fs::mkdir("dev/shm", Mode::from_raw_mode(0o755))?;
    #[cfg(feature = "mutations")]
    omissions.leave_for_exec_helper("dev")?;
    if omissions.omits(Mutation::DevFlags) {
        return Ok(());
    }
    let closed = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
    add_mount_attributes(c"dev", closed).map_err(errno)
}

/// Mounts a `/proc` that shows a process only to those who may trace it, and processes only.
///
/// The agent may see them all, where it has a group of its own: the copy of a template is under
/// other Landlock rules than the agent, and so is none that it may trace.
pub(crate) fn proc(ids: AgentIds, omissions: &Omissions) -> Result<()> {
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    if !omissions.omits(Mutation::ProcFlags) {
        flags |= MountFlags::NOEXEC | MountFlags::RDONLY;
    }
    let mut options = Vec::new();
    if !omissions.omits(Mutation::ProcHidepid) {
        options.push("hidepid=invisible".to_owned());
        if ids.are_separate() {
            options.push(format!("gid={}", ids.agent));
        }
    }
    if !omissions.omits(Mutation::ProcSubset) {
        options.push("subset=pid".to_owned());
    }
    let options = CString::new(options.join(",")).map_err(|_| Errno::INVAL)?;
    let target = target("proc")?;
    mount(c"proc", path(&target), c"proc", flags, options.as_c_str())
}

/// Makes the working folder the root and takes the host's tree away.
pub(crate) fn pivot(omissions: &Omissions) -> Result<()> {
    if omissions.omits(Mutation::OldRoot) {
        rustix::process::pivot_root(".", "mnt")?;
    } else {
        rustix::process::pivot_root(".", ".")?;
        // The host's tree lies on top of the new root now.
        unmount(".", UnmountFlags::DETACH)?;
    }
    rustix::process::chdir("/")?;
    if rustix::process::getcwd(Vec::new())?.as_bytes() == b"/" {
        Ok(())
    } else {
        Err(Errno::XDEV)
    }
}

fn tmpfs(name: &str, flags: MountFlags, options: &str) -> Result<()> {
    let options = CString::new(options).map_err(|_| Errno::INVAL)?;
    let target = target(name)?;
    mount(SOURCE, path(&target), c"tmpfs", flags, options.as_c_str())
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
