//! The results folder: where artifacts are saved, never over a file that is there.
//!
//! What is saved comes from a sandbox, and the folder may hold anything: names are made safe,
//! links in the folder are not followed, a file appears under its name only when it is whole and
//! its hash is right, and a name that is taken gets a number. If this process is killed, no half
//! file stays where the file system has unnamed files.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};

use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::sign::BodyDigest;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use tokio::io::AsyncWrite;

use super::safe_name::SafePath;
use crate::failure::{Failure, reason, shown};

/// Numbers that are tried for one name.
const MAX_VERSIONS: u32 = 10_000;

/// How a file came to lie in the results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum How {
    /// Under its own name.
    New,
    /// Under another one, because its own was taken or could not be kept.
    Renamed,
    /// It lay there already, byte for byte.
    Unchanged,
}

/// A file that lies in the results folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Where, with the folder in front.
    pub(crate) path: PathBuf,
    /// How it came there.
    pub(crate) how: How,
}

/// The results folder.
#[derive(Debug)]
pub(crate) struct Results {
    path: PathBuf,
}

impl Results {
    /// Checks, without leaving anything, that files can be saved in `path`, or that it can be
    /// made.
    pub(crate) fn at(path: &Path) -> Result<Self, Failure> {
        let mut folder = path;
        loop {
            // An empty path is what is above a relative name: the current folder.
            let checked = if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            };
            match fs_err::metadata(checked) {
                Ok(metadata) if !metadata.is_dir() => {
                    return Err(Failure::bad_input(format!(
                        "cannot save results in {}: {} is not a folder",
                        shown(path),
                        shown(checked)
                    )));
                }
                Ok(_) => {
                    // Rights are not all that it takes (`/proc` is root's and takes no files), so
                    // it is tried out, with a file that has no name.
                    open_folder(CWD, checked, OFlags::empty())
                        .map_err(std::io::Error::from)
                        .and_then(|folder| try_out(&folder))
                        .map_err(|error| cannot_save(path, &error))?;
                    return Ok(Self { path: path.into() });
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    folder = folder.parent().ok_or_else(|| cannot_save(path, &error))?;
                }
                Err(error) => return Err(cannot_save(path, &error)),
            }
        }
    }

    /// Begins a file. It has no name before [`Draft::publish`].
    pub(crate) fn draft(&self) -> Result<Draft, Failure> {
        let begin = || -> std::io::Result<Draft> {
            fs_err::create_dir_all(&self.path)?;
            // The person named this folder, so a link to it is followed; nothing below it is.
            let folder = open_folder(CWD, &self.path, OFlags::empty())?;
            let (file, temporary) = begin_file(&folder)?;
            Ok(Draft {
                root: self.path.clone(),
                fault: None,
                folder,
                file,
                temporary,
                hash: ring::digest::Context::new(&ring::digest::SHA256),
                bytes: 0,
            })
        };
        begin().map_err(|error| cannot_save(&self.path, &error))
    }
}

fn cannot_save(path: &Path, error: &std::io::Error) -> Failure {
    Failure::Input {
        problem: format!("cannot save results in {}", shown(path)),
        fix: Some(match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                "make room there, or name another folder with --out".into()
            }
            _ => "make that folder writable, or name another with --out".into(),
        }),
        cause: Some(reason(error).into()),
    }
}

/// A file that is being written.
pub(crate) struct Draft {
    root: PathBuf,
    /// Why writing failed.
    fault: Option<Failure>,
    folder: OwnedFd,
    file: File,
    /// Its name where the file system has no unnamed files; empty once it is gone.
    temporary: Option<String>,
    hash: ring::digest::Context,
    bytes: u64,
}

impl Draft {
    /// Adds bytes.
    fn add(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.file
            .write_all(bytes)
            .map_err(|error| cannot_save(&self.root, &error))?;
        self.hash.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Why writing failed, where it did.
    pub(crate) fn take_fault(&mut self) -> Option<Failure> {
        self.fault.take()
    }

    /// Bytes and hash of what was written so far.
    pub(crate) fn written(&self) -> (u64, BodyDigest) {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.hash.clone().finish().as_ref());
        (self.bytes, BodyDigest::from_bytes(digest))
    }

    /// Gives the file its name, or the next one that is free.
    pub(crate) fn publish(mut self, name: &FileName) -> Result<Saved, Failure> {
        let wanted = SafePath::of(name);
        let placed = match self.place(&wanted) {
            // Something that is no folder lies where a folder has to be: do without folders.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::EXIST) => self.place(&wanted.flattened()),
            placed => placed,
        };
        let (relative, how) = placed.map_err(|error| {
            Failure::machine(
                format!("saving {name} in {}", shown(&self.root)),
                reason(&error.into()),
            )
        })?;
        let as_named = relative.as_os_str() == name.as_os_str();
        Ok(Saved {
            path: self.root.join(&relative),
            how: match how {
                How::New if !as_named => How::Renamed,
                how => how,
            },
        })
    }

    fn place(&mut self, path: &SafePath) -> Result<(PathBuf, How), Errno> {
        let mut folder = self
            .folder
            .try_clone()
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        for part in &path.folders {
            match rustix::fs::mkdirat(&folder, part.as_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
            folder = open_folder(&folder, Path::new(part), OFlags::NOFOLLOW)?;
        }
        let below: PathBuf = path.folders.iter().collect();
        let mut last = None;
        for number in 1..=MAX_VERSIONS {
            let name = path.version(number);
            if last.as_ref() == Some(&name) {
                break;
            }
            match self.link(&folder, &name) {
                Ok(()) => {
                    let how = if number == 1 { How::New } else { How::Renamed };
                    return Ok((below.join(name), how));
                }
                Err(Errno::EXIST) if self.is_same(&folder, &name) => {
                    return Ok((below.join(name), How::Unchanged));
                }
                Err(Errno::EXIST) => last = Some(name),
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST)
    }

    /// Gives the file a name; [`Errno::EXIST`] when it is taken.
    fn link(&mut self, folder: &OwnedFd, name: &str) -> Result<(), Errno> {
        match &self.temporary {
            None => {
                let unnamed = format!("/proc/self/fd/{}", self.file.as_raw_fd());
                rustix::fs::linkat(CWD, unnamed, folder, name, AtFlags::SYMLINK_FOLLOW)
            }
            Some(temporary) => {
                let from = temporary.as_str();
                match rustix::fs::renameat_with(
                    &self.folder,
                    from,
                    folder,
                    name,
                    RenameFlags::NOREPLACE,
                ) {
                    // Network file systems know no such rename, but links that do not replace.
                    Err(Errno::INVAL | Errno::NOSYS) => {
                        rustix::fs::linkat(&self.folder, from, folder, name, AtFlags::empty())?;
                    }
                    Err(error) => return Err(error),
                    Ok(()) => self.temporary = None,
                }
                Ok(())
            }
        }
    }

    /// Whether a file that is there holds the same bytes.
    fn is_same(&self, folder: &OwnedFd, name: &str) -> bool {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(there) = rustix::fs::openat(folder, name, flags, Mode::empty()) else {
            return false;
        };
        let mut there = File::from(there);
        match there.metadata() {
            Ok(metadata) if metadata.is_file() && metadata.len() == self.bytes => {}
            _ => return false,
        }
        let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
        let mut chunk = vec![0; 64 * 1024];
        loop {
            match there.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => hash.update(&chunk[..count]),
                Err(_) => return false,
            }
        }
        hash.finish().as_ref() == self.written().1.as_bytes()
    }
}

/// Why it failed is kept for [`Draft::take_fault`].
impl std::io::Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self.add(bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(fault) => {
                self.fault = Some(fault);
                Err(std::io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writing to a local file takes no waiting that could be done otherwise.
impl AsyncWrite for Draft {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Poll::Ready(std::io::Write::write(&mut *self, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // It was never given a name, or it has two by now.
            let _ = rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty());
        }
    }
}

fn open_folder(above: impl std::os::fd::AsFd, path: &Path, more: OFlags) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | more;
    rustix::fs::openat(above, path, flags, Mode::empty())
}

/// Whether a file can be made in the folder; none stays.
fn try_out(folder: &OwnedFd) -> std::io::Result<()> {
    match begin_file(folder)? {
        (_, Some(temporary)) => Ok(rustix::fs::unlinkat(folder, temporary, AtFlags::empty())?),
        (_, None) => Ok(()),
    }
}

/// An unnamed file in the folder, or a hidden one where the file system has no unnamed ones.
fn begin_file(folder: &OwnedFd) -> std::io::Result<(File, Option<String>)> {
    // The person's umask takes away what it always takes away.
    let mode = Mode::from_raw_mode(0o666);
    let unnamed = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(folder.as_fd(), ".", unnamed, mode) {
        Ok(file) => return Ok((file.into(), None)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        Err(error) => return Err(error.into()),
    }
    let name = format!(".glovebox-{}.part", ExecutionId::new());
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name.as_str(), flags, mode)?;
    Ok((file.into(), Some(name)))
}

#[cfg(test)]
mod tests;
