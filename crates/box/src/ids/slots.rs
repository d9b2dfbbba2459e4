//! A pair of ids for each box that no other box of this host has at the same time.
//!
//! Launchers of one user share a range of ids, so a pair is taken by a lock on one byte of a
//! file that they share. The kernel lets it go when the launcher ends, however it ends.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};

use glovebox_protocol::agent_config::AgentIds;
use rustix::fs::{Mode, OFlags, fstat, mkdir, open, openat};
use rustix::io::Errno;

use crate::control::Fault;
use crate::sys::lock::{lock_byte, unlock_byte};

/// Ids that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(Option<u32>);

/// All pairs of ids.
#[derive(Debug)]
pub(crate) struct Slots {
    file: OwnedFd,
    taken: BTreeSet<u32>,
    count: u32,
}

/// The ids of a box: inside, and as the pod knows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BoxIds {
    pub(crate) inside: AgentIds,
    pub(crate) pod: AgentIds,
}

impl Slots {
    /// Pairs up to the pod's `last` id; with 0 there is one id for all.
    pub(crate) const fn new(file: OwnedFd, last: u32) -> Self {
        Self {
            file,
            taken: BTreeSet::new(),
            count: last / 2,
        }
    }

    /// Takes the lowest free pair. `None` when all are taken.
    ///
    /// # Errors
    /// When the file of locks cannot be used.
    pub(crate) fn take(&mut self) -> io::Result<Option<(Slot, BoxIds)>> {
        if self.count == 0 {
            return Ok(Some((Slot(None), BoxIds::ONE)));
        }
        for number in 0..self.count {
            if !self.taken.contains(&number) && lock_byte(self.file.as_fd(), number)? {
                self.taken.insert(number);
                return Ok(Some((Slot(Some(number)), BoxIds::of_slot(number))));
            }
        }
        Ok(None)
    }

    /// Gives a pair back.
    ///
    /// # Errors
    /// When the file of locks cannot be used.
    pub(crate) fn release(&mut self, slot: Slot) -> io::Result<()> {
        let Slot(Some(number)) = slot else {
            return Ok(());
        };
        self.taken.remove(&number);
        unlock_byte(self.file.as_fd(), number)
    }
}

impl BoxIds {
    /// Agent and workload share the one id there is.
    const ONE: Self = Self {
        inside: AgentIds {
            agent: AgentIds::WORKLOAD,
            workload: AgentIds::WORKLOAD,
        },
        pod: AgentIds {
            agent: 0,
            workload: 0,
        },
    };

    /// The pair of a slot. Id 0 of the pod is the launcher's own.
    pub(crate) const fn of_slot(number: u32) -> Self {
        Self {
            inside: AgentIds {
                agent: AgentIds::AGENT,
                workload: AgentIds::WORKLOAD,
            },
            pod: AgentIds {
                agent: 1 + 2 * number,
                workload: 2 + 2 * number,
            },
        }
    }

    /// The text of the box's maps, for users and groups alike.
    pub(crate) fn map(self) -> String {
        let mut text = format!("{} {} 1\n", self.inside.agent, self.pod.agent);
        if self.inside.are_separate() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {} 1", self.inside.workload, self.pod.workload);
        }
        text
    }
}

/// Opens the file of locks that all launchers with the same range of ids share. The range is told
/// by its first host id.
///
/// # Errors
/// When there is no safe folder for it.
pub(crate) fn open_file(first: u32) -> Result<OwnedFd, Fault> {
    let uid = rustix::process::geteuid();
    let candidates = if uid.is_root() {
        vec!["/run/glovebox".to_owned()]
    } else {
        vec![
            format!("/run/user/{}/glovebox", uid.as_raw()),
            format!("/tmp/glovebox-{}", uid.as_raw()),
        ]
    };
    let mut last = Errno::NOENT;
    for folder in &candidates {
        match open_in(folder, first) {
            Ok(file) => return Ok(file),
            Err(error) => last = error,
        }
    }
    Err(Fault::failed(
        format!(
            "opening the list of ids in use in {}",
            candidates.join(" or ")
        ),
        last,
    )
    .with_fix("make that folder yours, and yours alone (mode 700)"))
}

fn open_in(folder: &str, first: u32) -> rustix::io::Result<OwnedFd> {
    match mkdir(folder, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let folder = open(
        folder,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let stat = fstat(&folder)?;
    // Whoever else could write here could hold every lock.
    if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0 {
        return Err(Errno::PERM);
    }
    openat(
        &folder,
        format!("ids-{first}.lock"),
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &std::path::Path) -> OwnedFd {
        let mut options = fs_err::OpenOptions::new();
        options.read(true).write(true).create(true);
        options.open(path).unwrap().into_parts().0.into()
    }

    #[test]
    fn two_launchers_never_have_the_same_pair() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slots");
        let mut first = Slots::new(file(&path), 8);
        let mut second = Slots::new(file(&path), 8);
        let (slot, ids) = first.take().unwrap().unwrap();
        assert_eq!((ids.pod.agent, ids.pod.workload), (1, 2));
        assert_eq!(second.take().unwrap().unwrap().1.pod.agent, 3);
        assert_eq!(first.take().unwrap().unwrap().1.pod.agent, 5);
        assert_eq!(second.take().unwrap().unwrap().1.pod.agent, 7);
        assert!(first.take().unwrap().is_none());
        first.release(slot).unwrap();
        assert_eq!(second.take().unwrap().unwrap().1.pod.agent, 1);
        drop(second);
        assert_eq!(first.take().unwrap().unwrap().1.pod.agent, 1);
    }

    #[test]
    fn with_one_id_there_is_one_line_in_the_map() {
        let folder = tempfile::tempdir().unwrap();
        let mut slots = Slots::new(file(&folder.path().join("slots")), 0);
        let (_, ids) = slots.take().unwrap().unwrap();
        assert_eq!(ids.map(), "1000 0 1\n");
        assert_eq!(BoxIds::of_slot(1).map(), "999 3 1\n1000 4 1\n");
    }
}
