//! Room on the disk that files of people cannot take: with none left nobody could sign in, and nothing
//! could be deleted to make room.

use rustix::fs::statvfs;

use super::App;
use super::threads::ChatError;
use crate::failure::chain;

/// How much is kept free, in bytes.
const RESERVE: u64 = 64 << 20;

/// On a small disk it is this part of it.
const PART: u64 = 10;

/// What a disk has, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Disk {
    total: u64,
    free: u64,
}

impl Disk {
    /// Whether its reserve is whole once so many bytes more are on it.
    const fn has_room_for(self, bytes: u64) -> bool {
        let part = self.total / PART;
        let reserve = if part < RESERVE { part } else { RESERVE };
        self.free >= reserve.saturating_add(bytes)
    }
}

impl App {
    /// Whether the disk of the server's data takes so many bytes more and keeps its reserve. One that
    /// cannot be asked refuses nothing: what it does not take, it says when it is written.
    pub(crate) fn has_room_for(&self, bytes: u64) -> bool {
        let folder = &self.config().data;
        match statvfs(folder) {
            Ok(found) => Disk {
                total: found.f_blocks.saturating_mul(found.f_frsize),
                free: found.f_bavail.saturating_mul(found.f_frsize),
            }
            .has_room_for(bytes),
            Err(error) => {
                let (folder, error) = (folder.display(), chain(&error));
                tracing::warn!(%folder, error, "asking how much room there is on the disk");
                true
            }
        }
    }

    /// Refuses what the disk does not take without its reserve.
    pub(super) fn needs_room_for(&self, bytes: u64) -> Result<(), ChatError> {
        if self.has_room_for(bytes) {
            Ok(())
        } else {
            Err(ChatError::DiskFull)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_keeps_its_reserve() {
        let large = |free| Disk {
            total: 1 << 40,
            free,
        };
        assert!(large(RESERVE).has_room_for(0));
        assert!(!large(RESERVE).has_room_for(1));
        assert!(large(RESERVE + 5).has_room_for(5));
        assert!(!large(0).has_room_for(0));
        let small = |free| Disk { total: 1000, free };
        assert!(small(105).has_room_for(5));
        assert!(!small(105).has_room_for(6));
    }
}
