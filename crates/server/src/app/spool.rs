//! Files on their way through the server, for whose hash there has to be all of them first: they
//! have no name on the disk, and together and for each caller not more room than a budget.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many bytes lie there at most.
const TOTAL: u64 = 2 << 30;

/// How many of them are one caller's at most, where it has more than one file.
const EACH: u64 = TOTAL / 4;

/// The room for files on their way. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Spool {
    folder: PathBuf,
    used: Arc<Mutex<HashMap<String, u64>>>,
}

/// Some of the room, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    spool: Spool,
    caller: String,
    bytes: u64,
}

/// A file on its way, and its share of the room.
#[derive(Debug)]
pub(crate) struct Spooled {
    file: Unnamed,
    _share: Share,
}

/// A file without a name. It is gone when it is dropped, or the process ends in whatever way.
#[derive(Debug)]
pub(crate) struct Unnamed(File);

/// Why there is no room.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpoolError {
    /// It is taken.
    #[error("too many files are on their way just now")]
    Full,
    /// The disk does not do it.
    #[error("making a file for what is on its way")]
    Disk(#[from] std::io::Error),
}

impl Spool {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            used: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        // A map of numbers has no state in which it could be left half changed.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for a file of so many bytes at most. One that is larger than all the room has
    /// to be alone.
    pub(crate) fn begin(&self, caller: String, bytes: u64) -> Result<Spooled, SpoolError> {
        let bytes = bytes.min(TOTAL);
        let share = {
            let mut used = self.lock();
            let all: u64 = used.values().sum();
            let own = used.get(&caller).copied().unwrap_or_default();
            if all + bytes > TOTAL || (own > 0 && own + bytes > EACH) {
                return Err(SpoolError::Full);
            }
            used.insert(caller.clone(), own + bytes);
            Share {
                spool: self.clone(),
                caller,
                bytes,
            }
        };
        Ok(Spooled {
            file: Unnamed::in_folder(&self.folder)?,
            _share: share,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut used = self.spool.lock();
        if let Some(own) = used.get_mut(&self.caller) {
            *own -= self.bytes;
            if *own == 0 {
                used.remove(&self.caller);
            }
        }
    }
}

impl Spooled {
    /// Where this process finds it, for as long as it is kept.
    pub(crate) fn path(&self) -> PathBuf {
        self.file.path()
    }

    /// The same file, from its beginning.
    pub(crate) fn open(&self) -> std::io::Result<tokio::fs::File> {
        self.file.open()
    }
}

impl Unnamed {
    /// Makes one on the disk of a folder.
    pub(crate) fn in_folder(folder: &Path) -> std::io::Result<Self> {
        tempfile::tempfile_in(folder).map(Self)
    }

    /// Where this process finds it, for as long as it is kept.
    pub(crate) fn path(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }

    /// The same file, from its beginning.
    pub(crate) fn open(&self) -> std::io::Result<tokio::fs::File> {
        let mut options = File::options();
        options
            .read(true)
            .write(true)
            .open(self.path())
            .map(tokio::fs::File::from_std)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_shared_and_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::new(folder.path().into());
        let begin = |caller: &str, bytes| spool.begin(caller.into(), bytes);
        let large = begin("ada", TOTAL * 2).unwrap();
        assert!(matches!(begin("bob", 1), Err(SpoolError::Full)));
        drop(large);
        let first = begin("ada", EACH).unwrap();
        assert!(matches!(begin("ada", 1), Err(SpoolError::Full)));
        let other = begin("bob", EACH).unwrap();
        drop((first, other));
        assert!(spool.lock().is_empty());
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 0);
    }
}
