//! The folder for sockets: taken by a lock, and swept of what launchers that are gone have left
//! beside it.
//!
//! Removes sockets and its own lock files only, and only below folders that carry a lock file of
//! a launcher; never walks into anything.

use std::ffi::{CStr, OsStr};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Gid, Mode, OFlags, Uid, fchown, flock, fstat, openat,
    renameat, rmdir, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};

use crate::control::{DOOR, Fault, FaultKind};

/// How many runtimes may wait at the door: as a rule none, and one does not hurt another.
const WAITING_RUNTIMES: i32 = 8;

const LOCK: &CStr = c"launcher.lock";
const LOCK_BEFORE: &CStr = c"launcher.lock.new";

/// A run folder that this launcher holds.
#[derive(Debug)]
pub(crate) struct RunFolder {
    folder: OwnedFd,
    path: PathBuf,
    _lock: OwnedFd,
}

impl RunFolder {
    /// Takes the folder at `path`, makes it where it is not there, and sweeps its neighbours.
    /// With `owner`, gives it to the pod.
    ///
    /// # Errors
    /// When it is not ours alone, another launcher holds it, or it cannot be written.
    pub(crate) fn take(path: &Path, owner: Option<(Uid, Gid)>) -> Result<Self, Fault> {
        let doing = || format!("taking the run folder {}", path.display());
        let failed = |error: Errno| Fault::failed(doing(), error);
        // Made here and not by the runtime: it could end before this process knows of the folder.
        match rustix::fs::mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let folder = open_folder(rustix::fs::CWD, path).map_err(failed)?;
        let stat = fstat(&folder).map_err(failed)?;
        let (own, pod) = (rustix::process::geteuid(), owner.map(|(uid, _)| uid));
        if stat.st_uid != own.as_raw() && Some(stat.st_uid) != pod.map(Uid::as_raw) {
            return Err(Fault::invalid(doing(), "it belongs to another user")
                .with_fix("choose a run folder of your own (GLOVEBOX_RUN)"));
        }
        let left = match lock(&folder, LOCK) {
            Ok(Some(left)) => {
                sweep_sockets(&folder).map_err(failed)?;
                Some(left)
            }
            Ok(None) => {
                return Err(Fault {
                    kind: FaultKind::Held,
                    ..Fault::invalid(doing(), "another launcher holds it")
                });
            }
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed(error)),
        };
        let lock = make_lock(&folder).map_err(failed)?;
        // Not before: a neighbour that got hold of it in between would sweep the folder.
        drop(left);
        sweep_neighbours(path);
        if let Some((uid, gid)) = owner {
            fchown(&folder, Some(uid), Some(gid)).map_err(failed)?;
        }
        Ok(Self {
            folder,
            path: path.to_owned(),
            _lock: lock,
        })
    }

    /// The open folder.
    ///
    /// # Errors
    /// When there are no descriptors left.
    pub(crate) fn open(&self) -> rustix::io::Result<OwnedFd> {
        rustix::io::fcntl_dupfd_cloexec(&self.folder, 0)
    }

    /// Its name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Listens at [`DOOR`] for runtimes of whoever started this launcher.
    ///
    /// # Errors
    /// When the folder's path is too long for a socket, or the socket cannot be made.
    pub(crate) fn open_door(&self) -> Result<OwnedFd, Fault> {
        let path = self.path.join(DOOR);
        let doing = || format!("listening at {}", path.display());
        let failed = |error: Errno| Fault::failed(doing(), error);
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let door =
            socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).map_err(failed)?;
        bind(&door, &SocketAddrUnix::new(&path).map_err(failed)?).map_err(failed)?;
        // Before it listens, so that nobody else was ever let in.
        rustix::fs::chmodat(
            &self.folder,
            DOOR,
            Mode::RUSR | Mode::WUSR,
            AtFlags::empty(),
        )
        .map_err(failed)?;
        listen(&door, WAITING_RUNTIMES).map_err(failed)?;
        Ok(door)
    }

    /// Empties the folder and removes it.
    ///
    /// # Errors
    /// When something in it, or itself, cannot be removed.
    pub(crate) fn leave(&self) -> Result<(), Fault> {
        sweep_sockets(&self.folder)
            .and_then(|()| remove_lock(&self.folder))
            .and_then(|()| match rmdir(&self.path) {
                // Whoever made it may have removed it, or have put something of its own there.
                Err(Errno::NOENT | Errno::NOTEMPTY) => Ok(()),
                other => other,
            })
            .map_err(|error| {
                Fault::failed(
                    format!("removing the run folder {}", self.path.display()),
                    error,
                )
            })
    }
}

fn open_folder(parent: impl std::os::fd::AsFd, path: &Path) -> rustix::io::Result<OwnedFd> {
    openat(
        parent,
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
    )
}

/// Locks an existing lock file; `None` when another process holds it, or has put its own in the
/// place of it.
fn lock(folder: &OwnedFd, name: &CStr) -> rustix::io::Result<Option<OwnedFd>> {
    let file = openat(
        folder,
        name,
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    lock_opened(folder, name, file)
}

fn lock_opened(
    folder: &OwnedFd,
    name: &CStr,
    file: OwnedFd,
) -> rustix::io::Result<Option<OwnedFd>> {
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            let (ours, there) = (
                fstat(&file)?,
                statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?,
            );
            let same = (ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino);
            Ok(same.then_some(file))
        }
        Err(Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a lock file that is locked from the first moment under its name.
fn make_lock(folder: &OwnedFd) -> rustix::io::Result<OwnedFd> {
    let file = openat(
        folder,
        LOCK_BEFORE,
        OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::RUSR | Mode::WUSR,
    )?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    renameat(folder, LOCK_BEFORE, folder, LOCK)?;
    Ok(file)
}

fn remove_lock(folder: &OwnedFd) -> rustix::io::Result<()> {
    match unlinkat(folder, LOCK, AtFlags::empty()) {
        // Whoever made the folder may have removed it meanwhile.
        Err(Errno::NOENT) => Ok(()),
        other => other,
    }
}

fn sweep_sockets(folder: &OwnedFd) -> rustix::io::Result<()> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        if entry.file_type() == FileType::Socket {
            match unlinkat(folder, entry.file_name(), AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

/// Removes the run folders of launchers that are gone. What cannot be removed is left for the
/// next time: it harms nobody.
///
/// Whose they are does not matter: what we may not touch the kernel refuses, and as root nothing
/// is touched but sockets and lock files right below a folder that has such a lock file.
fn sweep_neighbours(path: &Path) {
    let Some(parent) = path.parent() else {
        return;
    };
    let Ok(parent) = open_folder(rustix::fs::CWD, parent) else {
        return;
    };
    let Ok(entries) = Dir::read_from(&parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let hidden = name.to_bytes().starts_with(b".");
        if !hidden && entry.file_type() == FileType::Directory {
            // See above.
            let _ = sweep_neighbour(&parent, name);
        }
    }
}

fn sweep_neighbour(parent: &OwnedFd, name: &CStr) -> rustix::io::Result<()> {
    let folder = open_folder(parent, Path::new(OsStr::from_bytes(name.to_bytes())))?;
    // Held by nobody: its launcher is gone.
    if lock(&folder, LOCK)?.is_some() {
        sweep_sockets(&folder)?;
        remove_lock(&folder)?;
        unlinkat(parent, name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_folder_left_by_a_dead_launcher_is_swept_and_a_live_one_is_not() {
        let run = tempfile::tempdir().unwrap();
        let folder = |name: &str| {
            let path = run.path().join(name);
            fs_err::create_dir(&path).unwrap();
            path
        };
        let (dead, live, other, new) = (
            folder("dead"),
            folder("live"),
            folder("other"),
            folder("new"),
        );
        let dead_launcher = RunFolder::take(&dead, None).unwrap();
        UnixListener::bind(dead.join("socket")).unwrap();
        drop(dead_launcher);
        let _live_launcher = RunFolder::take(&live, None).unwrap();
        UnixListener::bind(live.join("socket")).unwrap();
        UnixListener::bind(other.join("socket")).unwrap();
        let launcher = RunFolder::take(&new, None).unwrap();
        assert!(!dead.exists());
        assert!(live.join("socket").exists());
        assert!(other.join("socket").exists(), "no launcher was here");
        assert!(RunFolder::take(&live, None).is_err(), "taken twice");
        UnixListener::bind(new.join("socket")).unwrap();
        launcher.leave().unwrap();
        assert!(!new.exists());
    }

    #[test]
    fn an_old_lock_is_of_no_use_once_the_folder_is_taken_anew() {
        let run = tempfile::tempdir().unwrap();
        let path = run.path().join("folder");
        drop(RunFolder::take(&path, None).unwrap());
        let folder = open_folder(rustix::fs::CWD, &path).unwrap();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let old = openat(&folder, LOCK, flags, Mode::empty()).unwrap();
        let taken = RunFolder::take(&path, None).unwrap();
        // As a neighbour does that had opened it before.
        assert!(lock_opened(&folder, LOCK, old).unwrap().is_none());
        taken.leave().unwrap();
    }

    #[test]
    fn a_link_is_not_followed() {
        let run = tempfile::tempdir().unwrap();
        let real = run.path().join("real");
        fs_err::create_dir(&real).unwrap();
        let link = run.path().join("link");
        fs_err::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(RunFolder::take(&link, None).is_err());
    }
}
