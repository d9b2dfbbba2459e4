//! What has to be taken away when a box ends, or when making it failed half way.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::fs::{AtFlags, unlinkat};
use rustix::io::Errno;

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
}

impl Remains {
    /// Whether the kernel killed the agent because its memory had run out.
    pub(crate) fn agent_ran_out_of_memory(&self) -> bool {
        self.groups
            .as_ref()
            .is_some_and(|groups| groups.agent_oom_kills() > 0)
    }

    /// Takes everything away that is there. All parts are tried; a part that could not be taken
    /// away stays, so that it can be tried again.
    ///
    /// # Errors
    /// The first failure.
    pub(crate) fn clear(
        &mut self,
        slots: &mut Slots,
        run_folder: &OwnedFd,
        patience: Duration,
    ) -> Result<(), Fault> {
        let mut result = Ok(());
        if let Some(groups) = &self.groups {
            match groups.remove(patience) {
                Ok(()) => self.groups = None,
                Err(error) => {
                    result = Err(Fault::failed(
                        "removing the box's control groups",
                        chain(&error),
                    ));
                }
            }
        }
        if let Some(name) = &self.socket {
            match unlinkat(run_folder, name.as_str(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => self.socket = None,
                Err(error) => {
                    result = result.and(Err(Fault::failed("removing the box's socket", error)));
                }
            }
        }
        // While a process may be left, its ids must not become another's.
        if self.groups.is_none()
            && let Some(slot) = self.slot.take()
        {
            let released = slots
                .release(slot)
                .map_err(|error| Fault::failed("giving back the box's ids", error));
            result = result.and(released);
        }
        result
    }
}
