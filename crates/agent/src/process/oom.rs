//! How often the kernel's out-of-memory killer has struck the workload.

use std::os::fd::OwnedFd;

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
        oom_kills(&text[..length])
    }
}

/// The number in the line `oom_kill N`, which version 1 and 2 of control groups share.
fn oom_kills(text: &[u8]) -> u64 {
    std::str::from_utf8(text)
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_both_versions() {
        assert_eq!(oom_kills(b"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\n"), 2);
        assert_eq!(
            oom_kills(b"oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"),
            7
        );
        assert_eq!(oom_kills(b""), 0);
        assert_eq!(oom_kills(b"\xff"), 0);
    }
}
