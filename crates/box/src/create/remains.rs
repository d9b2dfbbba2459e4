//! What has to be taken away when a box ends, or when making it failed half way.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

use super::child::Inside;
use crate::cgroup::group::BoxGroups;
use crate::control::Fault;
use crate::fault::chain;
use crate::ids::slots::{Slot, Slots};

/// Parts of a box that outlive its processes.
#[derive(Debug, Default)]
pub(crate) struct Remains {
    pub(crate) slot: Option<Slot>,
    pub(crate) groups: Option<BoxGroups>,
    /// The name of the socket in the run folder.
    pub(crate) socket: Option<String>,
    /// What its first process begins with. Until that has said its first word or has ended, it
    /// may not have a table of descriptors of its own, and these numbers must not become others'.
    pub(crate) inside: Option<Inside>,
}

/// Why something stayed.
#[derive(Debug)]
pub(crate) enum Stays {
    /// It is about to go: the kernel lets go of a process a moment after it has been waited for.
    ForNow(Fault),
    /// Waiting does not help.
    ForGood(Fault),
}

impl Remains {
    /// Whether the kernel killed the agent because its memory had run out.
    pub(crate) fn agent_ran_out_of_memory(&self) -> bool {
        self.groups
            .as_ref()
            .is_some_and(|groups| groups.agent_oom_kills() > 0)
    }

    /// Takes everything away that can be taken away once the first process has ended. All parts
    /// are tried; a part that stays can be tried again.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) fn clear(&mut self, slots: &mut Slots, run_folder: &OwnedFd) -> Result<(), Stays> {
        let mut result = Ok(());
        self.inside = None;
        if let Some(groups) = &self.groups {
            match groups.try_remove() {
                Ok(()) => self.groups = None,
                Err(error) => {
                    let fault = Fault::failed("removing the box's control groups", chain(&error));
                    result = Err(if error.is_passing() {
                        Stays::ForNow(fault)
                    } else {
                        Stays::ForGood(fault)
                    });
                }
            }
        }
        if let Some(name) = &self.socket {
            match unlinkat(run_folder, name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => self.socket = None,
                Err(error) => {
                    let fault = Fault::failed("removing the box's socket", error);
                    result = result.and(Err(Stays::ForGood(fault)));
                }
            }
        }
        // While a process may be left, its ids must not become another's.
        if self.groups.is_none()
            && let Some(slot) = self.slot.take()
        {
            let released = slots
                .release(slot)
                .map_err(|error| Stays::ForGood(Fault::failed("giving back the box's ids", error)));
            result = result.and(released);
        }
        result
    }
}
