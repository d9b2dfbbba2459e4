//! What must exist before a box's first process does: its socket, its configuration, its pipes.

use std::ffi::CString;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use glovebox_protocol::agent_config::{AgentConfig, AgentFds, AgentIds};
use rustix::fs::{AtFlags, MemfdFlags, Mode, SealFlags, chmodat, fcntl_add_seals, memfd_create};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with, socketpair,
};
use rustix::pipe::{PipeFlags, pipe_with};

use super::mounts::layers_option;
use super::parent::{Design, Surroundings};
use crate::control::Fault;

/// Connections that may wait for the agent.
const BACKLOG: i32 = 64;

/// The longest path that a socket may have, its ending zero byte not counted.
const SOCKET_PATH: usize = 107;

/// Where the exec helper and Python lie in a box.
const EXEC_HELPER: &str = "/opt/glovebox/bin/glovebox-exec";
pub(crate) const PYTHON: &str = "/opt/python/bin/python3";

/// The option string of the root mount, from names that the runtime gave.
///
/// # Errors
/// When a name leaves the data folder, or means something to the kernel's parser.
pub(crate) fn check_layers(layers: &[String]) -> Result<CString, Fault> {
    let doing = "checking the layers of the root";
    if layers.len() < 2 {
        return Err(Fault::invalid(doing, "an overlay needs two layers or more"));
    }
    for layer in layers {
        let plain = |part: &str| {
            !part.is_empty()
                && !part.starts_with('.')
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        };
        if !layer.split('/').all(plain) {
            return Err(Fault::invalid(
                doing,
                format!("`{layer}` is no plain name below the data folder"),
            ));
        }
    }
    layers_option(layers).map_err(|error| Fault::invalid(doing, error))
}

/// Binds the agent's socket in the run folder, which is the working folder of nobody: the path
/// goes over the open folder, because the launcher's own id may not be able to walk to it.
///
/// # Errors
/// When the path is too long for a socket, or the folder cannot be written.
pub(super) fn bind_socket(
    surroundings: &Surroundings,
    name: &str,
) -> Result<(PathBuf, OwnedFd), Fault> {
    let path = surroundings.run.join(name);
    let doing = || format!("binding the agent's socket {}", path.display());
    if path.as_os_str().len() > SOCKET_PATH {
        return Err(Fault::invalid(
            doing(),
            format!("the path is longer than {SOCKET_PATH} bytes"),
        )
        .with_fix("choose a shorter run folder (GLOVEBOX_RUN)"));
    }
    let failed = |error: rustix::io::Errno| Fault::failed(doing(), error);
    let socket = socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
        None,
    )
    .map_err(failed)?;
    let number = std::os::fd::AsRawFd::as_raw_fd(&surroundings.run_folder);
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{number}/{name}")).map_err(failed)?;
    bind(&socket, &address).map_err(failed)?;
    chmodat(
        &surroundings.run_folder,
        name,
        Mode::RUSR | Mode::WUSR,
        AtFlags::empty(),
    )
    .map_err(failed)?;
    listen(&socket, BACKLOG).map_err(failed)?;
    Ok((path, socket))
}

/// Writes the agent's configuration to a sealed file without a name.
///
/// # Errors
/// When there is no memory for it.
pub(super) fn config_file(design: &Design, ids: AgentIds, fds: AgentFds) -> Result<OwnedFd, Fault> {
    let doing = "writing the agent's configuration";
    let config = AgentConfig {
        claim: design.claim.clone(),
        limits: design.kind.limits.clone(),
        start: design.kind.start,
        ids,
        exec_helper: EXEC_HELPER.into(),
        python: PYTHON.into(),
        fds,
    };
    let text = serde_json::to_vec(&config).map_err(|error| Fault::failed(doing, error))?;
    let failed = |error: rustix::io::Errno| Fault::failed(doing, error);
    let memory = memfd_create(
        "agent-config",
        MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING,
    )
    .map_err(failed)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(&text)
        .map_err(|error| Fault::failed(doing, error))?;
    std::io::Seek::rewind(&mut file).map_err(|error| Fault::failed(doing, error))?;
    fcntl_add_seals(
        &file,
        SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE,
    )
    .map_err(failed)?;
    Ok(file.into())
}

/// Makes the line between launcher and agent: the launcher's end, which never waits, and the
/// agent's.
///
/// # Errors
/// When the launcher has no descriptors left.
pub(super) fn agents_line() -> Result<(OwnedFd, OwnedFd), Fault> {
    let failed = |error| Fault::exhausted("making the line to the agent", error);
    let (ours, theirs) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed)?;
    rustix::io::ioctl_fionbio(&ours, true).map_err(failed)?;
    Ok((ours, theirs))
}

/// The pipes between the launcher and a box's first process.
pub(super) struct Pipes {
    /// The launcher says "go".
    pub(super) release: Ends,
    /// The first process says how far it is.
    pub(super) report: Ends,
    /// The agent's standard error.
    pub(super) words: Ends,
}

/// The two ends of a pipe.
pub(super) struct Ends {
    pub(super) read: OwnedFd,
    pub(super) write: OwnedFd,
}

impl Pipes {
    /// Makes them.
    ///
    /// # Errors
    /// When the launcher has no descriptors left.
    pub(super) fn make() -> Result<Self, Fault> {
        let pipe = |flags| {
            pipe_with(PipeFlags::CLOEXEC | flags)
                .map(|(read, write)| Ends { read, write })
                .map_err(|error| Fault::exhausted("making a pipe to the box", error))
        };
        Ok(Self {
            release: pipe(PipeFlags::empty())?,
            // Neither waits for the other.
            report: pipe(PipeFlags::NONBLOCK)?,
            // An agent that says too much must neither wait for the launcher nor stop it.
            words: pipe(PipeFlags::NONBLOCK)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_stay_below_the_data_folder() {
        let check = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            check_layers(&names)
        };
        assert_eq!(
            check(&["layers/runtime-1", "trees/root-1"])
                .unwrap()
                .as_c_str(),
            c"lowerdir=layers/runtime-1:trees/root-1,userxattr"
        );
        for bad in [
            "", "/etc", "../x", "a/../b", "a:b", "a,b", "a\\b", "a//b", "a\0b", ".a",
        ] {
            assert!(
                check(&["trees/root-1", bad]).is_err(),
                "{bad:?} was accepted"
            );
        }
        assert!(check(&["trees/root-1"]).is_err(), "one layer was accepted");
    }
}
