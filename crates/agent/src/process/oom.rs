//! How often the kernel's out-of-memory killer has struck the workload.

use std::os::fd::OwnedFd;

use glovebox_protocol::agent_config::OomEvents;

/// Reads the counter that the launcher handed over.
pub(crate) struct OomCounter {
    events: Option<OwnedFd>,
}

impl OomCounter {
    pub(crate) const fn new(events: Option<OwnedFd>) -> Self {
        Self { events }
    }

    /// The count so far; 0 where nobody counts.
    pub(crate) fn read(&self) -> u64 {
        let Some(events) = &self.events else { return 0 };
        let mut text = [0; 1024];
        // Read from the start each time: the kernel writes the file anew for every first read.
        let length = rustix::io::pread(events, &mut text, 0).unwrap_or(0);
        OomEvents::kills(&text[..length])
    }
}
