//! Keeps a finished tree honest: a quick look at every start, and a full one when that fails.
//!
//! The quick look compares what the kernel says of each entry (mode, owner, size, times, inode)
//! with what it said when the tree was sealed. Nobody but root can set an inode's change time, so
//! a change is seen without reading the files. Trees that were copied to another disk fail the
//! quick look, pass the full one and are sealed again. It does not protect from a host whose root
//! or whose own user is against it: they can write a new seal.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use fs_err as fs;
use ring::digest::{Context, Digest, SHA256};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use serde::{Deserialize, Serialize};

use super::error::{SetupError, file};
use super::manifest;

const DOING: &str = "verifying the tree";

/// What was found when a tree was sealed.
#[derive(Debug, Serialize, Deserialize)]
struct Seal {
    manifest_sha256: String,
    fingerprint: String,
}

/// Files that lie beside a tree.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    pub(crate) tree: PathBuf,
    pub(crate) manifest: PathBuf,
    seal: PathBuf,
}

impl Beside {
    pub(crate) fn of(tree: &Path) -> Self {
        Self {
            tree: tree.to_path_buf(),
            manifest: with_ending(tree, ".manifest"),
            seal: with_ending(tree, ".seal"),
        }
    }

    /// Whether a finished tree is here.
    pub(crate) fn exists(&self) -> bool {
        self.tree.is_dir() && self.manifest.is_file()
    }

    /// Records how the tree is now. Called once it has its final name, as renaming a folder
    /// changes its times.
    pub(crate) fn seal(&self) -> Result<(), SetupError> {
        let seal = Seal {
            manifest_sha256: manifest::hash_file(&self.manifest).map_err(file(DOING))?,
            fingerprint: fingerprint(&self.tree)?,
        };
        let content = serde_json::to_vec(&seal).map_err(|source| SetupError::Answer {
            doing: DOING,
            source,
        })?;
        let unfinished = with_ending(&self.tree, &format!(".seal-{}", std::process::id()));
        fs::write(&unfinished, content)
            .and_then(|()| fs::rename(&unfinished, &self.seal))
            .map_err(file(DOING))
    }

    /// Whether the tree looks as it did when it was sealed. Reads no file of the tree.
    pub(crate) fn looks_untouched(&self) -> Result<bool, SetupError> {
        let Some(seal) = self.read_seal() else {
            return Ok(false);
        };
        Ok(seal.fingerprint == fingerprint(&self.tree)?)
    }

    /// Compares every entry of the tree with the manifest.
    pub(crate) fn verify(&self) -> Result<(), SetupError> {
        let changed = |path: PathBuf, how| SetupError::Changed {
            tree: self.tree.clone(),
            path,
            how,
        };
        let written = manifest::hash_file(&self.manifest).map_err(file(DOING))?;
        if self
            .read_seal()
            .is_some_and(|seal| seal.manifest_sha256 != written)
        {
            return Err(changed(self.manifest.clone(), "has been changed"));
        }
        let expected = manifest::read(&self.manifest)?;
        match manifest::difference(&expected, &manifest::scan(&self.tree)?) {
            Some((path, how)) => Err(changed(path, how)),
            None => Ok(()),
        }
    }

    fn read_seal(&self) -> Option<Seal> {
        serde_json::from_slice(&fs::read(&self.seal).ok()?).ok()
    }
}

/// A path with something added to its last part.
pub(crate) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(ending);
    path.with_file_name(name)
}

/// Condenses what the kernel says of every entry of a tree.
///
/// Folder by folder, those of one depth shared between two threads: nearly all of the time is
/// spent in system calls, and a command waits for this before it starts a box.
fn fingerprint(tree: &Path) -> Result<String, SetupError> {
    let failed = |error: rustix::io::Errno| SetupError::File {
        doing: DOING,
        source: std::io::Error::new(error.kind(), format!("{}: {error}", tree.display())),
    };
    let root = rustix::fs::lstat(tree).map_err(failed)?;
    let mut context = Context::new(&SHA256);
    add(&mut context, b"", &root);
    let mut level = vec![tree.to_path_buf()];
    while !level.is_empty() {
        let mut below = Vec::new();
        for folder in look_at(&level).map_err(failed)? {
            context.update(folder.digest.as_ref());
            below.extend(folder.below);
        }
        level = below;
    }
    Ok(manifest::hex(context.finish().as_ref()))
}

/// What the kernel says of one folder's entries.
struct Looked {
    digest: Digest,
    below: Vec<PathBuf>,
}

fn look_at(folders: &[PathBuf]) -> rustix::io::Result<Vec<Looked>> {
    let (first, second) = folders.split_at(folders.len() / 2);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            second
                .iter()
                .map(|path| look_at_one(path))
                .collect::<Result<Vec<_>, _>>()
        });
        let mut all = first
            .iter()
            .map(|path| look_at_one(path))
            .collect::<Result<Vec<_>, _>>();
        match other.join() {
            Ok(rest) => {
                let rest = rest?;
                if let Ok(all) = &mut all {
                    all.extend(rest);
                }
                all
            }
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn look_at_one(path: &Path) -> rustix::io::Result<Looked> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::open(path, flags, Mode::empty())?;
    let mut names = Vec::new();
    for entry in rustix::fs::Dir::read_from(&folder)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_owned());
        }
    }
    names.sort_unstable();
    let mut context = Context::new(&SHA256);
    let mut below = Vec::new();
    for name in names {
        let stat = rustix::fs::statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        add(&mut context, name.to_bytes_with_nul(), &stat);
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            below.push(path.join(OsStr::from_bytes(name.to_bytes())));
        }
    }
    Ok(Looked {
        digest: context.finish(),
        below,
    })
}

fn add(context: &mut Context, name: &[u8], stat: &Stat) {
    context.update(name);
    for value in [
        u64::from(stat.st_mode),
        u64::from(stat.st_uid),
        u64::from(stat.st_gid),
        stat.st_ino,
    ] {
        context.update(&value.to_le_bytes());
    }
    let times = [stat.st_size, stat.st_mtime, stat.st_ctime];
    for value in times {
        context.update(&value.to_le_bytes());
    }
    context.update(&stat.st_mtime_nsec.to_le_bytes());
    context.update(&stat.st_ctime_nsec.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> (tempfile::TempDir, Beside) {
        let data = tempfile::tempdir().unwrap();
        let tree = data.path().join("root-1");
        fs::create_dir_all(tree.join("etc")).unwrap();
        fs::write(tree.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        let beside = Beside::of(&tree);
        manifest::write(&manifest::scan(&tree).unwrap(), &beside.manifest).unwrap();
        beside.seal().unwrap();
        (data, beside)
    }

    #[test]
    fn an_untouched_tree_passes_both_looks() {
        let (_data, beside) = sealed();
        assert!(beside.looks_untouched().unwrap());
        beside.verify().unwrap();
    }

    #[test]
    fn a_change_that_keeps_size_and_time_is_seen_and_named() {
        let (_data, beside) = sealed();
        let path = beside.tree.join("etc/hosts");
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        fs::write(&path, "127.0.0.2 localhost\n").unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .file()
            .set_modified(time)
            .unwrap();
        assert!(!beside.looks_untouched().unwrap());
        let error = beside.verify().unwrap_err();
        assert!(
            error.to_string().contains("etc/hosts has been changed"),
            "{error}"
        );
        assert!(error.fix().contains("root-1"));
    }

    #[test]
    fn a_touched_tree_with_the_same_content_passes_the_full_look_only() {
        let (_data, beside) = sealed();
        fs::write(beside.tree.join("etc/hosts"), "127.0.0.1 localhost\n").unwrap();
        assert!(!beside.looks_untouched().unwrap());
        beside.verify().unwrap();
        beside.seal().unwrap();
        assert!(beside.looks_untouched().unwrap());
    }

    #[test]
    fn a_changed_manifest_is_named() {
        let (_data, beside) = sealed();
        fs::write(&beside.manifest, "").unwrap();
        let error = beside.verify().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("root-1.manifest has been changed"),
            "{error}"
        );
    }
}
