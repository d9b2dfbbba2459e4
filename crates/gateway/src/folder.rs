//! The state folder: which gateway this is, and the key that it is known by. One process owns it.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use glovebox_protocol::ids::GatewayId;
use rustix::fs::{FlockOperation, flock};

use crate::tls::{NewIdentity, TlsError, TlsIdentity};

const ID: &str = "gateway-id";
const KEY: &str = "tls-key.der";
const CERTIFICATE: &str = "tls-certificate.der";
const LOCK: &str = "lock";

/// A state folder that is this process's own, as long as this lives.
#[derive(Debug)]
pub struct StateFolder {
    path: PathBuf,
    _lock: fs_err::File,
}

/// What a state folder holds.
pub struct Identity {
    /// Which gateway this is.
    pub gateway: GatewayId,
    /// What it is known by.
    pub tls: TlsIdentity,
    /// Whether both have just been made.
    pub is_new: bool,
}

/// Why a state folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It cannot be made, read or written.
    #[error("using the state folder {}", path.display())]
    Use {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Others could read the key in it, or put another one there.
    #[error("the state folder {} is not safe: {what}", path.display())]
    Unsafe {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Another gateway uses it.
    #[error("the state folder {} is in use by another gateway", path.display())]
    InUse {
        /// Which one.
        path: PathBuf,
    },
    /// Part of what it holds is missing or broken.
    #[error("the state folder {} holds a broken {file}; remove the folder to begin anew, with another fingerprint", path.display())]
    Broken {
        /// Which one.
        path: PathBuf,
        /// Which file.
        file: &'static str,
    },
    /// There is no gateway of this folder yet.
    #[error("the state folder {} holds no certificate yet; a gateway makes one at its first start", path.display())]
    Empty {
        /// Which one.
        path: PathBuf,
    },
    /// The key or the certificate cannot be made or used.
    #[error("preparing the gateway's key")]
    Tls(#[from] TlsError),
}

impl StateFolder {
    /// Makes the folder if need be, checks whose it is, and takes it.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub fn open(path: &Path) -> Result<Self, FolderError> {
        let path = &without_last_slash(path);
        let fault = |source| FolderError::Use {
            path: path.into(),
            source,
        };
        let made = std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path);
        made.map_err(fault)?;
        check(path)?;
        let lock = create(&path.join(LOCK), false).map_err(fault)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| FolderError::InUse { path: path.into() })?;
        Ok(Self {
            path: path.into(),
            _lock: lock,
        })
    }

    /// What the folder holds; made if there is nothing.
    ///
    /// # Errors
    /// See [`FolderError`].
    pub fn identity(&self) -> Result<Identity, FolderError> {
        // A key alone is one that nobody has seen yet. With anything beside it, what is missing has
        // been lost, and a new identity in its place would be another gateway without a word.
        let is_new = read(&self.path, CERTIFICATE)?.is_none() && read(&self.path, ID)?.is_none();
        if is_new {
            let made = NewIdentity::make()?;
            self.write(KEY, &made.key)?;
            self.write(CERTIFICATE, &made.certificate)?;
            self.write(ID, GatewayId::new().to_string().as_bytes())?;
        }
        let broken = |file| FolderError::Broken {
            path: self.path.clone(),
            file,
        };
        let part = |file| read(&self.path, file)?.ok_or_else(|| broken(file));
        let id = String::from_utf8(part(ID)?).ok();
        let id = id.and_then(|text| text.trim().parse().ok());
        let tls = TlsIdentity::new(part(KEY)?, part(CERTIFICATE)?);
        Ok(Identity {
            gateway: id.ok_or_else(|| broken(ID))?,
            tls: tls.map_err(|_| broken(KEY))?,
            is_new,
        })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&self, name: &'static str, content: &[u8]) -> Result<(), FolderError> {
        let fault = |source| FolderError::Use {
            path: self.path.clone(),
            source,
        };
        let beside = self.path.join(format!(".{name}.new"));
        let mut file = create(&beside, true).map_err(fault)?;
        let written = file.write_all(content).and_then(|()| file.sync_all());
        written.map_err(fault)?;
        fs_err::rename(&beside, self.path.join(name)).map_err(fault)?;
        // The name is there only when the folder is.
        let folder = fs_err::File::open(&self.path).map_err(fault)?;
        folder.sync_all().map_err(fault)
    }
}

/// The certificate in a folder that a gateway may be using now.
///
/// # Errors
/// When there is none, or the folder is not safe.
pub fn certificate(path: &Path) -> Result<Vec<u8>, FolderError> {
    let path = &without_last_slash(path);
    check(path)?;
    read(path, CERTIFICATE)?.ok_or_else(|| FolderError::Empty { path: path.into() })
}

/// With a slash at its end a link would be taken for what it leads to.
fn without_last_slash(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Makes sure that the folder, and what is in it, is this user's alone.
pub(crate) fn check(path: &Path) -> Result<(), FolderError> {
    let own = rustix::process::geteuid().as_raw();
    let not_safe = |what: String| FolderError::Unsafe {
        path: path.into(),
        what,
    };
    let look = |path: &Path| {
        let metadata = fs_err::symlink_metadata(path);
        metadata.map_err(|source| FolderError::Use {
            path: path.into(),
            source,
        })
    };
    let folder = look(path)?;
    if !folder.is_dir() {
        return Err(not_safe("it is no folder".into()));
    }
    if folder.uid() != own {
        return Err(not_safe(format!(
            "it belongs to user {}, and the gateway runs as {own}",
            folder.uid()
        )));
    }
    if folder.mode() & 0o077 != 0 {
        let mode = folder.mode() & 0o7777;
        return Err(not_safe(format!("its mode is {mode:o}; `chmod 700` it")));
    }
    for name in [KEY, CERTIFICATE, ID] {
        let file = path.join(name);
        if !file.try_exists().unwrap_or(true) {
            continue;
        }
        let metadata = look(&file)?;
        if !metadata.is_file() || metadata.uid() != own || metadata.mode() & 0o077 != 0 {
            return Err(not_safe(format!(
                "{name} in it has to be a file of the gateway's own with mode 600"
            )));
        }
    }
    Ok(())
}

fn create(path: &Path, empty: bool) -> std::io::Result<fs_err::File> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(empty);
    fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600).open(path)
}

fn read(path: &Path, name: &'static str) -> Result<Option<Vec<u8>>, FolderError> {
    match fs_err::read(path.join(name)) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FolderError::Use {
            path: path.into(),
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_has_lost_a_part_is_broken_and_a_key_alone_is_no_gateway_yet() {
        for lost in [ID, KEY, CERTIFICATE] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().join("state");
            let folder = StateFolder::open(&path).unwrap();
            assert!(folder.identity().unwrap().is_new);
            assert!(!folder.identity().unwrap().is_new);
            fs_err::remove_file(path.join(lost)).unwrap();
            let fault = folder.identity().err();
            assert!(
                matches!(fault, Some(FolderError::Broken { file, .. }) if file == lost),
                "{fault:?}"
            );
        }
        let place = tempfile::tempdir().unwrap();
        let folder = StateFolder::open(&place.path().join("state")).unwrap();
        folder.write(KEY, b"half made").unwrap();
        assert!(folder.identity().unwrap().is_new);
    }

    #[test]
    fn a_link_is_no_state_folder_however_it_is_written() {
        let place = tempfile::tempdir().unwrap();
        let real = place.path().join("real");
        drop(StateFolder::open(&real).unwrap());
        let link = place.path().join("link");
        fs_err::os::unix::fs::symlink(&real, &link).unwrap();
        for path in [link.clone(), link.join("")] {
            let fault = StateFolder::open(&path).err();
            assert!(
                matches!(fault, Some(FolderError::Unsafe { .. })),
                "{fault:?}"
            );
        }
    }
}
