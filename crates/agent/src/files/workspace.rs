//! The workspace folder and the only ways in which a name becomes a descriptor.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use glovebox_protocol::file::{FileKind, FileName, FileStat};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, StatVfs, fstat, fstatvfs, mkdirat,
    open, openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::FileError;

/// Never out of the workspace, never through a link of any kind, never onto another mount.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_XDEV);

/// How a folder is opened to reach what is in it. [`RESOLVE`] refuses a link in its place;
/// `NOFOLLOW` beside `PATH` would open the link itself.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The workspace, as one open folder.
#[derive(Debug)]
pub(crate) struct Workspace {
    root: OwnedFd,
}

/// One entry of a folder.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) name: FileName,
    pub(crate) kind: FileKind,
}

impl Workspace {
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        Ok(Self {
            // Not `PATH`: its owner's rights can be restored through it.
            root: open(
                path,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?,
        })
    }

    fn open_below(&self, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let name = OsStr::from_bytes(name);
        openat2(
            &self.root,
            name,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            RESOLVE,
        )
    }

    /// Opens a regular file for reading. Never waits, whatever stands under the name.
    pub(crate) fn open_file(&self, name: &FileName) -> Result<(OwnedFd, Stat), FileError> {
        let fault = |cause| FileError::from_os("opening", name, cause);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_below(name.as_bytes(), flags).map_err(fault)?;
        let stat = fstat(&file).map_err(fault)?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            Ok((file, stat))
        } else {
            Err(FileError::NotRegular(name.clone()))
        }
    }

    /// What is known of a name, links themselves included.
    pub(crate) fn stat(&self, name: &FileName) -> Result<Stat, FileError> {
        let fault = |cause| FileError::from_os("looking at", name, cause);
        let (folder, base) = self.parent(name)?;
        statat(&folder, base, AtFlags::SYMLINK_NOFOLLOW).map_err(fault)
    }

    /// Removes a file, a link or an empty folder.
    pub(crate) fn remove(&self, name: &FileName) -> Result<(), FileError> {
        let (folder, base) = self.parent(name)?;
        match unlinkat(&folder, base, AtFlags::empty()) {
            Err(Errno::ISDIR) => unlinkat(&folder, base, AtFlags::REMOVEDIR),
            result => result,
        }
        .map_err(|cause| FileError::from_os("removing", name, cause))
    }

    /// The folder that holds a name, and the last part of the name.
    fn parent<'n>(&self, name: &'n FileName) -> Result<(OwnedFd, &'n OsStr), FileError> {
        let (above, base) = split(name);
        self.open_below(above, FOLDER)
            .map(|folder| (folder, base))
            .map_err(|cause| FileError::from_os("opening the folder of", name, cause))
    }

    /// As [`Self::parent`], and makes the folders that are missing, one step at a time: each is
    /// opened below the one before, so that none can be swapped for a link in between.
    pub(crate) fn made_parent<'n>(
        &self,
        name: &'n FileName,
    ) -> Result<(OwnedFd, &'n OsStr), FileError> {
        let (above, base) = split(name);
        let fault = |cause| match cause {
            Errno::NOTDIR => FileError::NotAFolder(name.clone()),
            cause => FileError::from_os("making the folder of", name, cause),
        };
        let mut folder = self.open_below(b".", FOLDER).map_err(fault)?;
        for part in above
            .split(|byte| *byte == b'/')
            .filter(|part| *part != b".")
        {
            let part = OsStr::from_bytes(part);
            match mkdirat(&folder, part, Mode::from_raw_mode(0o755)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(cause) => return Err(fault(cause)),
            }
            folder = openat2(&folder, part, FOLDER, Mode::empty(), RESOLVE).map_err(fault)?;
        }
        Ok((folder, base))
    }

    /// Makes a new file directly in the workspace; the name must not be taken.
    pub(crate) fn create(&self, base: &str) -> Result<OwnedFd, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat2(&self.root, base, flags, Mode::from_raw_mode(0o644), RESOLVE)
    }

    /// Puts a file made by [`Self::create`] in the place of `name`, if that is free or a regular
    /// file. Should the program swap something else in between the look and the step, then that
    /// is replaced itself: a rename follows no link.
    pub(crate) fn put_in_place(&self, base: &str, name: &FileName) -> Result<(), FileError> {
        let fault = |cause| FileError::from_os("putting in place", name, cause);
        let (folder, last) = self.made_parent(name)?;
        match statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Err(cause) => return Err(fault(cause)),
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => {}
                FileType::Symlink => return Err(FileError::Link(name.clone())),
                _ => return Err(FileError::NotRegular(name.clone())),
            },
        }
        renameat(&self.root, base, &folder, last).map_err(fault)
    }

    /// Removes a file made by [`Self::create`].
    pub(crate) fn discard(&self, base: &str) {
        // Gone already is as good.
        let _ = unlinkat(&self.root, base, AtFlags::empty());
    }

    /// The entries of a folder (the workspace itself without a name), in no order.
    pub(crate) fn entries(
        &self,
        folder: Option<&FileName>,
    ) -> Result<impl Iterator<Item = Entry> + use<>, Errno> {
        let path = folder.map_or(&b"."[..], FileName::as_bytes);
        let fd = self.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK)?;
        let prefix = folder.map(|name| [name.as_bytes(), b"/"].concat());
        let entries = Dir::new(fd)?;
        Ok(entries.map_while(Result::ok).filter_map(move |entry| {
            let base = CStr::to_bytes(entry.file_name());
            if matches!(base, b"." | b"..") {
                return None;
            }
            let path = [prefix.as_deref().unwrap_or_default(), base].concat();
            // A path too long to be named can be neither listed nor fetched.
            Some(Entry {
                name: FileName::from_bytes(path).ok()?,
                kind: kind_of(entry.file_type()),
            })
        }))
    }

    /// Lets the owner of the workspace folder look into it again.
    pub(crate) fn open_to_owner(&self) {
        // Where it does not work the folder stays as the program left it.
        let _ = rustix::fs::fchmod(&self.root, Mode::RWXU);
    }

    /// How full the workspace is.
    pub(crate) fn usage(&self) -> Result<StatVfs, Errno> {
        fstatvfs(&self.root)
    }
}

/// The folder part (`.` for none) and the last part of a name.
fn split(name: &FileName) -> (&[u8], &OsStr) {
    let base = name.base();
    let above = &name.as_bytes()[..name.as_bytes().len() - base.len()];
    let above = above.strip_suffix(b"/").unwrap_or(b".");
    (above, OsStr::from_bytes(base))
}

fn kind_of(file_type: FileType) -> FileKind {
    match file_type {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Special,
    }
}

/// What the wire says of a file.
pub(crate) fn describe(name: FileName, stat: &Stat) -> FileStat {
    FileStat {
        name,
        kind: kind_of(FileType::from_raw_mode(stat.st_mode)),
        bytes: u64::try_from(stat.st_size).unwrap_or(0),
        modified_ms: stat
            .st_mtime
            .saturating_mul(1000)
            .saturating_add(stat.st_mtime_nsec.cast_signed() / 1_000_000),
    }
}
