//! Which files go into the sandbox, and under which names.
//!
//! Everything is looked at before anything is started: a file that cannot go in is found here.
//! Nothing is read here but sizes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use glovebox_protocol::file::FileName;
use glovebox_protocol::limits::InputLimits;

use crate::failure::{Failure, shown, unreadable};
use crate::quantity::size;

/// How many folders may lie in each other.
const MAX_DEPTH: usize = 64;

/// A file of this machine and the name that it gets in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its name below the workspace.
    pub(crate) name: FileName,
    /// Its size in bytes when it was looked at.
    pub(crate) bytes: u64,
}

/// All files that go in, and what of the named folders does not.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// The files, sorted by name.
    files: BTreeMap<FileName, (Input, Identity)>,
    /// Links and special files in folders, which stay outside.
    pub(crate) skipped: Vec<PathBuf>,
}

/// Device and inode: whether two paths are one file.
type Identity = (u64, u64);

impl Inputs {
    /// Adds a script or a file that a person named, under its base name.
    pub(crate) fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let metadata = fs_err::metadata(path).map_err(|error| unreadable(path, &error))?;
        if metadata.is_dir() {
            let below = match base_name(path) {
                Some(name) => name.as_bytes().to_vec(),
                // `.` is the folder in which the code would run anyway: its files go beside it.
                None if path == Path::new(".") => Vec::new(),
                None => return Err(nameless(path)),
            };
            return self.add_folder(path, &below, 0);
        }
        let base = base_name(path).ok_or_else(|| nameless(path))?;
        if !metadata.is_file() {
            return Err(Failure::bad_input(format!(
                "cannot take in {}: it is neither a file nor a folder",
                shown(path)
            )));
        }
        self.add_file(path, base.as_bytes(), &metadata)
    }

    fn add_folder(&mut self, folder: &Path, below: &[u8], depth: usize) -> Result<(), Failure> {
        if depth > MAX_DEPTH {
            return Err(Failure::bad_input(format!(
                "cannot take in {}: there are over {MAX_DEPTH} folders in each other",
                shown(folder)
            )));
        }
        let read = |error: std::io::Error| unreadable(folder, &error);
        for entry in fs_err::read_dir(folder).map_err(read)? {
            let entry = entry.map_err(read)?;
            let path = entry.path();
            let metadata =
                fs_err::symlink_metadata(&path).map_err(|error| unreadable(&path, &error))?;
            let mut name = below.to_vec();
            if !name.is_empty() {
                name.push(b'/');
            }
            name.extend_from_slice(entry.file_name().as_bytes());
            if metadata.is_dir() {
                self.add_folder(&path, &name, depth + 1)?;
            } else if metadata.is_file() {
                self.add_file(&path, &name, &metadata)?;
            } else {
                // A link in a folder may lead anywhere; only what was named itself is followed.
                self.skipped.push(path);
            }
        }
        Ok(())
    }

    fn add_file(
        &mut self,
        path: &Path,
        name: &[u8],
        metadata: &std::fs::Metadata,
    ) -> Result<(), Failure> {
        let name = FileName::from_bytes(name)
            .map_err(|error| Failure::input(format!("cannot take in {}", shown(path)), error))?;
        fs_err::File::open(path).map_err(|error| unreadable(path, &error))?;
        let identity = (metadata.dev(), metadata.ino());
        if let Some((first, of_first)) = self.files.get(&name) {
            // The same file twice is no conflict, as when a folder holds the script too.
            if *of_first == identity {
                return Ok(());
            }
            return Err(Failure::Input {
                problem: format!(
                    "{} and {} would both be {name} in the sandbox",
                    shown(&first.path),
                    shown(path)
                ),
                fix: Some("rename one, or put them into folders and name the folders".into()),
                cause: None,
            });
        }
        let input = Input {
            path: path.to_owned(),
            name: name.clone(),
            bytes: metadata.len(),
        };
        self.files.insert(name, (input, identity));
        Ok(())
    }

    /// The files in the order of their names.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Input> {
        self.files.values().map(|(input, _)| input)
    }

    /// All bytes together.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.files().map(|input| input.bytes).sum()
    }

    /// Checks the sizes.
    pub(crate) fn check(&self, limits: &InputLimits) -> Result<(), Failure> {
        for input in self.files() {
            if input.bytes > limits.file_bytes {
                return Err(Failure::bad_input(format!(
                    "{} has {}; one input may have {} at most",
                    shown(&input.path),
                    size_over(input.bytes, limits.file_bytes),
                    size(limits.file_bytes)
                )));
            }
        }
        let total = self.total_bytes();
        if total > limits.total_bytes {
            let largest = self
                .files()
                .max_by_key(|input| input.bytes)
                .map(|input| {
                    format!(
                        " (the largest is {}, {})",
                        shown(&input.path),
                        size(input.bytes)
                    )
                })
                .unwrap_or_default();
            return Err(Failure::bad_input(format!(
                "the inputs have {} together; there may be {} at most{largest}",
                size_over(total, limits.total_bytes),
                size(limits.total_bytes)
            )));
        }
        Ok(())
    }
}

/// A size that is over a limit, to the byte where it would read like the limit itself.
fn size_over(bytes: u64, limit: u64) -> String {
    let words = size(bytes);
    if words == size(limit) {
        format!("{bytes} bytes")
    } else {
        words
    }
}

/// The last part of a path, where that is a name.
fn base_name(path: &Path) -> Option<&OsStr> {
    match path.components().next_back() {
        Some(Component::Normal(name)) => Some(name),
        _ => None,
    }
}

fn nameless(path: &Path) -> Failure {
    Failure::bad_input(format!(
        "cannot take in {}: it has no name of its own",
        shown(path)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, name: impl AsRef<OsStr>, bytes: usize) -> PathBuf {
        let path = folder.join(name.as_ref());
        if let Some(parent) = path.parent() {
            fs_err::create_dir_all(parent).unwrap();
        }
        fs_err::write(&path, vec![0; bytes]).unwrap();
        path
    }

    fn names(inputs: &Inputs) -> Vec<String> {
        inputs.files().map(|input| input.name.to_string()).collect()
    }

    #[test]
    fn awkward_names_go_in_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let mut inputs = Inputs::default();
        let long = "ä".repeat(127) + "a";
        for name in ["with space", "it's \"q\"", "😀.csv", "-rf", long.as_str()] {
            inputs.add(&write(folder.path(), name, 1)).unwrap();
        }
        inputs
            .add(&write(folder.path(), OsStr::from_bytes(b"caf\xe9.csv"), 1))
            .unwrap();
        let raw: Vec<_> = inputs
            .files()
            .map(|input| input.name.as_bytes().to_vec())
            .collect();
        assert!(raw.contains(&b"caf\xe9.csv".to_vec()));
        assert!(raw.contains(&long.into_bytes()));
        assert_eq!(raw.len(), 6);
    }

    #[test]
    fn of_a_folder_everything_below_goes_in_but_links() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "data/a.csv", 1);
        write(folder.path(), "data/deep/er/b.csv", 1);
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("data/link")).unwrap();
        let mut inputs = Inputs::default();
        inputs.add(&folder.path().join("data/")).unwrap();
        assert_eq!(names(&inputs), ["data/a.csv", "data/deep/er/b.csv"]);
        assert_eq!(inputs.skipped, [folder.path().join("data/link")]);
    }

    #[test]
    fn two_files_of_one_name_are_refused_by_both_paths() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (
            write(folder.path(), "1/a.csv", 1),
            write(folder.path(), "2/a.csv", 1),
        );
        let mut inputs = Inputs::default();
        inputs.add(&one).unwrap();
        inputs.add(&one).unwrap();
        let words = inputs.add(&two).unwrap_err().sentence();
        assert!(
            words.contains("1/a.csv and ") && words.contains("2/a.csv would both be a.csv"),
            "{words}"
        );
    }

    #[test]
    fn what_is_too_large_is_named_with_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let limits = InputLimits {
            file_bytes: 10,
            total_bytes: 15,
        };
        let mut inputs = Inputs::default();
        inputs.add(&write(folder.path(), "a", 10)).unwrap();
        inputs.check(&limits).unwrap();
        inputs.add(&write(folder.path(), "b", 9)).unwrap();
        let words = inputs.check(&limits).unwrap_err().sentence();
        assert!(
            words.starts_with(
                "the inputs have 19 bytes together; there may be 15 bytes at most (the largest is "
            ),
            "{words}"
        );
        inputs.add(&write(folder.path(), "c", 11)).unwrap();
        let words = inputs.check(&limits).unwrap_err().sentence();
        assert!(
            words.ends_with("/c has 11 bytes; one input may have 10 bytes at most"),
            "{words}"
        );
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let mut inputs = Inputs::default();
        for path in ["/dev/null", "/", "..", "/no/such/file"] {
            assert!(inputs.add(Path::new(path)).is_err(), "{path} was taken");
        }
    }
}
