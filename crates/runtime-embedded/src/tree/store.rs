//! A folder of finished trees: one set-up at a time, each tree whole or not there.
//!
//! A tree is built under a name that begins with `.building-` and renamed when done, manifest
//! first. What a killed set-up leaves is removed by the next one, under the lock. It does not
//! know what is in a tree.

use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::copy;
use super::error::{SetupError, file};
use super::manifest;
use super::progress::{Progress, Step};
use super::seal::Beside;

const UNFINISHED: &str = ".building-";

/// A folder of trees, such as `data/trees`.
#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

/// Held while a store is changed; gone with the process.
pub(crate) struct Locked {
    _file: fs::File,
}

/// A tree that is being made; removed again unless it is finished.
pub(crate) struct Unfinished {
    pub(crate) path: PathBuf,
    finished: bool,
}

/// What tells, without reading it, that a file is the one it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileIdentity {
    path: PathBuf,
    size: u64,
    modified_ns: i128,
    inode: u64,
}

impl Store {
    /// Opens a store, which is made if there is none. Boxes read it under other ids, so it can be
    /// passed through by all.
    pub(crate) fn open(folder: PathBuf) -> Result<Self, SetupError> {
        if !folder.is_dir() {
            fs::create_dir_all(&folder)
                .and_then(|()| copy::set_mode(&folder, 0o755))
                .map_err(file("making the folder of trees"))?;
        }
        Ok(Self { folder })
    }

    pub(crate) fn tree(&self, name: &str) -> Beside {
        Beside::of(&self.folder.join(name))
    }

    /// Waits until no one else changes the store, and removes what killed set-ups left.
    pub(crate) fn lock(&self, progress: &mut dyn Progress) -> Result<Locked, SetupError> {
        let failed = file("locking the folder of trees");
        let opened = fs::File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(".lock"))
            .map_err(&failed)?;
        match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                progress.begins(Step::Wait);
                rustix::fs::flock(&opened, FlockOperation::LockExclusive)
                    .map_err(|e| failed(e.into()))?;
            }
            Err(error) => return Err(failed(error.into())),
        }
        self.remove_leftovers();
        Ok(Locked { _file: opened })
    }

    fn remove_leftovers(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return;
        };
        for path in entries.filter_map(Result::ok).map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with(UNFINISHED) {
                // A child of a killed set-up may still write to it for a moment; the next
                // set-up then finishes the removal.
                let _ = if path.is_dir() {
                    fs::remove_dir_all(&path)
                } else {
                    fs::remove_file(&path)
                };
            }
        }
    }

    /// A path in the store that is removed by the next set-up if this one does not.
    pub(crate) fn scratch(&self, what: &str) -> PathBuf {
        self.folder
            .join(format!("{UNFINISHED}{}-{what}", std::process::id()))
    }

    /// A file with some content, removed when it is no longer held, or by the next set-up.
    pub(crate) fn temporary(&self, content: &str) -> Result<NamedTempFile, SetupError> {
        let failed = file("writing a temporary file");
        let mut made = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.folder)
            .map_err(&failed)?;
        made.write_all(content.as_bytes()).map_err(&failed)?;
        Ok(made)
    }

    /// Makes an empty tree.
    pub(crate) fn begin(&self, name: &str, _lock: &Locked) -> Result<Unfinished, SetupError> {
        let path = self.scratch(name);
        fs::create_dir(&path)
            .and_then(|()| copy::set_mode(&path, 0o755))
            .map_err(file("making the new tree"))?;
        Ok(Unfinished {
            path,
            finished: false,
        })
    }

    /// Gives a complete tree its name.
    pub(crate) fn finish(
        &self,
        mut tree: Unfinished,
        name: &str,
        _lock: &Locked,
    ) -> Result<(), SetupError> {
        let doing = "putting the new tree in place";
        let failed = file(doing);
        let place = self.tree(name);
        let written = self.scratch("manifest");
        manifest::write(&manifest::scan(&tree.path)?, &written)?;
        // All of it is on the disk before any of it counts.
        let opened = fs::File::open(&self.folder).map_err(&failed)?;
        rustix::fs::syncfs(&opened).map_err(|error| failed(error.into()))?;
        fs::rename(&written, &place.manifest).map_err(&failed)?;
        fs::rename(&tree.path, &place.tree).map_err(&failed)?;
        tree.finished = true;
        place.seal()
    }

    /// Reads a record that [`Self::remember`] wrote, if it is there and readable.
    pub(crate) fn recall<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Option<T> {
        serde_json::from_slice(&fs::read(self.folder.join(name)).ok()?).ok()
    }

    /// Writes a record, whole or not at all.
    pub(crate) fn remember<T: Serialize>(
        &self,
        name: &str,
        record: &T,
        _lock: &Locked,
    ) -> Result<(), SetupError> {
        let doing = "recording the new tree";
        let content =
            serde_json::to_vec(record).map_err(|source| SetupError::Answer { doing, source })?;
        let unfinished = self.scratch(name);
        fs::write(&unfinished, content)
            .and_then(|()| fs::rename(&unfinished, self.folder.join(name)))
            .map_err(file(doing))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.finished {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl FileIdentity {
    /// Of a file as it is now.
    pub(crate) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            path: path.to_path_buf(),
            size: metadata.size(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
            inode: metadata.ino(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether another file is there now in its place. One that is gone has not been replaced.
    pub(crate) fn is_replaced(&self) -> bool {
        Self::of(&self.path).is_ok_and(|now| now != *self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::progress::Silent;

    #[test]
    fn a_tree_is_there_only_when_it_is_finished() {
        let data = tempfile::tempdir().unwrap();
        let store = Store::open(data.path().join("trees")).unwrap();
        let lock = store.lock(&mut Silent).unwrap();
        let dropped = store.begin("root-1", &lock).unwrap();
        fs::write(dropped.path.join("file"), "").unwrap();
        drop(dropped);
        assert!(!store.tree("root-1").exists());

        let tree = store.begin("root-1", &lock).unwrap();
        fs::write(tree.path.join("file"), "").unwrap();
        store.finish(tree, "root-1", &lock).unwrap();
        assert!(store.tree("root-1").exists());
        assert!(store.tree("root-1").looks_untouched().unwrap());
    }

    #[test]
    fn what_a_killed_set_up_left_is_removed_by_the_next() {
        let data = tempfile::tempdir().unwrap();
        let store = Store::open(data.path().to_path_buf()).unwrap();
        let left = data.path().join(".building-1-root-1/usr");
        fs::create_dir_all(&left).unwrap();
        let _lock = store.lock(&mut Silent).unwrap();
        assert!(!left.exists());
    }

    #[test]
    fn a_file_that_was_replaced_is_told_from_one_that_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python3");
        fs::write(&path, "1").unwrap();
        let identity = FileIdentity::of(&path).unwrap();
        assert!(!identity.is_replaced());
        fs::write(&path, "12").unwrap();
        assert!(identity.is_replaced());
        fs::remove_file(&path).unwrap();
        assert!(!identity.is_replaced());
    }
}
