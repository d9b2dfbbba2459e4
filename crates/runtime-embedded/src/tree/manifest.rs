//! The list of everything in a tree, with a hash of each file.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::error::{SetupError, file};

/// Threads that hash; more than disks and this machine's cores feed is of no use.
const THREADS: usize = 2;

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Folder,
    File,
    Link,
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Inside the tree, without a leading slash.
    pub(crate) path: String,
    pub(crate) kind: Kind,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Bytes of a file, or of a link's target.
    pub(crate) size: u64,
    /// Of a file's content or a link's target; empty for folders.
    pub(crate) sha256: String,
}

/// Lists and hashes a tree, sorted by path.
pub(crate) fn scan(tree: &Path) -> Result<Vec<Entry>, SetupError> {
    let mut entries = Vec::new();
    list(tree, Path::new(""), &mut entries)?;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    // Interleaved, so that each thread gets its share of the big files that lie together.
    let hashed: Result<Vec<_>, SetupError> = std::thread::scope(|scope| {
        let entries = &entries;
        let workers: Vec<_> = (0..THREADS)
            .map(|first| {
                scope.spawn(move || {
                    entries
                        .iter()
                        .enumerate()
                        .skip(first)
                        .step_by(THREADS)
                        .map(|(index, entry)| Ok((index, hash(tree, entry)?)))
                        .collect::<Result<Vec<_>, SetupError>>()
                })
            })
            .collect();
        let mut all = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(part) => all.extend(part?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(all)
    });
    for (index, sha256) in hashed? {
        entries[index].sha256 = sha256;
    }
    Ok(entries)
}

fn list(tree: &Path, relative: &Path, entries: &mut Vec<Entry>) -> Result<(), SetupError> {
    let failed = file("listing the tree");
    for entry in fs::read_dir(tree.join(relative)).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let path = relative.join(entry.file_name());
        let unwanted = |what| SetupError::Unwanted {
            path: path.clone(),
            what,
        };
        let metadata = fs::symlink_metadata(entry.path()).map_err(&failed)?;
        let kind = match metadata.file_type() {
            kind if kind.is_dir() => Kind::Folder,
            kind if kind.is_file() => Kind::File,
            kind if kind.is_symlink() => Kind::Link,
            _ => return Err(unwanted("neither file, folder nor link")),
        };
        entries.push(Entry {
            path: path
                .to_str()
                .ok_or_else(|| unwanted("not named in UTF-8"))?
                .to_owned(),
            kind,
            mode: metadata.permissions().mode() & 0o7777,
            size: if kind == Kind::Folder {
                0
            } else {
                metadata.size()
            },
            sha256: String::new(),
        });
        if kind == Kind::Folder {
            list(tree, &path, entries)?;
        }
    }
    Ok(())
}

fn hash(tree: &Path, entry: &Entry) -> Result<String, SetupError> {
    let failed = file("hashing the tree");
    let path = tree.join(&entry.path);
    match entry.kind {
        Kind::Folder => Ok(String::new()),
        Kind::File => hash_file(&path).map_err(failed),
        Kind::Link => Ok(hash_bytes(
            fs::read_link(path).map_err(failed)?.as_os_str().as_bytes(),
        )),
    }
}

/// The SHA-256 of a file, as lowercase hexadecimal digits.
pub(crate) fn hash_file(path: &Path) -> std::io::Result<String> {
    let mut opened = fs::File::open(path)?;
    let mut context = Context::new(&SHA256);
    let mut buffer = vec![0; 256 * 1024];
    loop {
        match opened.read(&mut buffer)? {
            0 => return Ok(hex(context.finish().as_ref())),
            count => context.update(&buffer[..count]),
        }
    }
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> String {
    hex(ring::digest::digest(&SHA256, bytes).as_ref())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// Writes a manifest, one JSON object a line, and gives its own hash.
pub(crate) fn write(entries: &[Entry], to: &Path) -> Result<String, SetupError> {
    let doing = "writing the manifest";
    let mut content = Vec::new();
    for entry in entries {
        serde_json::to_writer(&mut content, entry)
            .map_err(|source| SetupError::Answer { doing, source })?;
        content.push(b'\n');
    }
    let mut opened = fs::File::create(to).map_err(file(doing))?;
    opened
        .write_all(&content)
        .and_then(|()| opened.sync_all())
        .map_err(file(doing))?;
    Ok(hash_bytes(&content))
}

/// Reads a manifest back.
pub(crate) fn read(from: &Path) -> Result<Vec<Entry>, SetupError> {
    let doing = "reading the manifest";
    let opened = BufReader::new(fs::File::open(from).map_err(file(doing))?);
    opened
        .lines()
        .map(|line| {
            let line = line.map_err(file(doing))?;
            serde_json::from_str(&line).map_err(|source| SetupError::Answer { doing, source })
        })
        .collect()
}

/// The first path at which two sorted lists differ, and how the second does.
pub(crate) fn difference(expected: &[Entry], found: &[Entry]) -> Option<(PathBuf, &'static str)> {
    let mut rest = found.iter().peekable();
    for entry in expected {
        match rest.next() {
            Some(other) if other == entry => {}
            Some(other) if other.path == entry.path => {
                return Some((entry.path.clone().into(), "has been changed"));
            }
            Some(other) if other.path < entry.path => {
                return Some((other.path.clone().into(), "has been added"));
            }
            _ => return Some((entry.path.clone().into(), "is missing")),
        }
    }
    rest.next()
        .map(|entry| (entry.path.clone().into(), "has been added"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/one"), "1").unwrap();
        fs::write(folder.path().join("two"), "2").unwrap();
        std::os::unix::fs::symlink("two", folder.path().join("link")).unwrap();
        folder
    }

    #[test]
    fn a_manifest_reads_back_as_it_was_written() {
        let tree = folder();
        let entries = scan(tree.path()).unwrap();
        assert_eq!(
            entries.iter().map(|entry| &*entry.path).collect::<Vec<_>>(),
            ["a", "a/one", "link", "two"]
        );
        let at = tempfile::NamedTempFile::new().unwrap();
        write(&entries, at.path()).unwrap();
        assert_eq!(read(at.path()).unwrap(), entries);
    }

    #[test]
    fn each_kind_of_change_is_named() {
        let tree = folder();
        let before = scan(tree.path()).unwrap();
        fs::write(tree.path().join("a/one"), "9").unwrap();
        let changed = scan(tree.path()).unwrap();
        assert_eq!(
            difference(&before, &changed),
            Some(("a/one".into(), "has been changed"))
        );
        fs::write(tree.path().join("a/one"), "1").unwrap();
        fs::write(tree.path().join("a/new"), "").unwrap();
        let added = scan(tree.path()).unwrap();
        assert_eq!(
            difference(&before, &added),
            Some(("a/new".into(), "has been added"))
        );
        assert_eq!(
            difference(&added, &before),
            Some(("a/new".into(), "is missing"))
        );
    }

    #[test]
    fn a_pipe_in_a_tree_is_refused() {
        let tree = folder();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            tree.path().join("pipe"),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(matches!(
            scan(tree.path()),
            Err(SetupError::Unwanted { .. })
        ));
    }
}
