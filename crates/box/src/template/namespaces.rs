//! The namespaces of a box, as descriptors through which a process can join them.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::thread::LinkNameSpaceType;

use crate::control::Fault;

/// Those that a helper joins, with their names in `/proc`, in the order in which that is possible:
/// the user namespace gives the right to join the others.
pub(crate) const JOINED: [(&str, LinkNameSpaceType); 6] = [
    ("user", LinkNameSpaceType::User),
    ("mnt", LinkNameSpaceType::Mount),
    ("net", LinkNameSpaceType::Network),
    ("ipc", LinkNameSpaceType::InterProcessCommunication),
    ("uts", LinkNameSpaceType::HostNameAndNISDomainName),
    ("pid", LinkNameSpaceType::ProcessID),
];

/// The one that a copy joins itself.
pub(crate) const VIEW: (&str, LinkNameSpaceType) = ("cgroup", LinkNameSpaceType::ControlGroup);

/// All namespaces of one box.
#[derive(Debug)]
pub(crate) struct Namespaces(Vec<OwnedFd>);

impl Namespaces {
    /// Opens those of a box's first process. To be called once all mounts and names of the box
    /// are in place: before that it is not in all of them, or they are not what they will be.
    ///
    /// # Errors
    /// When the process has ended.
    pub(crate) fn of(host_pid: i32) -> Result<Self, Fault> {
        JOINED
            .iter()
            .chain([&VIEW])
            .map(|(name, _)| {
                let path = format!("/proc/{host_pid}/ns/{name}");
                rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(
                    |error| Fault::failed(format!("opening the box's {name} namespace"), error),
                )
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// In the order of [`JOINED`], and [`VIEW`] last.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.0.iter().map(|fd| fd.as_fd())
    }
}
