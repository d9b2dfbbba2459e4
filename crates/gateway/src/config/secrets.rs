//! The credentials: from the environment, or from a file that may change while the gateway runs.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use glovebox_protocol::sign::{Credential, Credentials};

use super::Variables;

/// Longest file of credentials, in bytes.
const MAX_FILE: u64 = 4096;

/// Where credentials come from. Those from the environment stay as they are.
#[derive(Debug, Clone)]
pub enum CredentialSource {
    /// `GATEWAY_CREDENTIALS`.
    Fixed(Credentials),
    /// `GATEWAY_CREDENTIALS_FILE`.
    File(PathBuf),
}

/// Why there are no credentials in a file.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// It cannot be read.
    #[error("reading the credentials")]
    Read(#[source] std::io::Error),
    /// Others can read it.
    #[error("{} has the mode {mode:o}, so that others can read it; `chmod 600` it", path.display())]
    Mode {
        /// Which file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// It is somebody else's.
    #[error("{} belongs to user {owner}; it has to be the gateway's own or root's", path.display())]
    Owner {
        /// Which file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// What it holds is not one or two credentials.
    #[error("{} does not hold one or two credentials, the new one first: {what}", path.display())]
    Content {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

/// By what it is seen that a file is another one, or has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp(u64, i64, i64, u64);

impl CredentialSource {
    /// The credentials as they are now.
    ///
    /// # Errors
    /// When the file cannot be read, can be read by others, or holds something else.
    pub fn load(&self) -> Result<Credentials, SecretsError> {
        match self {
            Self::Fixed(credentials) => Ok(credentials.clone()),
            Self::File(path) => load(path),
        }
    }

    /// What changes when the file does; nothing where there is none.
    #[must_use]
    pub fn stamp(&self) -> Option<Stamp> {
        let Self::File(path) = self else {
            return None;
        };
        let metadata = fs_err::metadata(path).ok()?;
        let (seconds, nanoseconds) = (metadata.mtime(), metadata.mtime_nsec());
        Some(Stamp(metadata.ino(), seconds, nanoseconds, metadata.len()))
    }
}

fn load(path: &Path) -> Result<Credentials, SecretsError> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    use std::io::Read as _;
    // Without waiting: a pipe in the file's place would never open.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(SecretsError::Read)?;
    let metadata = file.metadata().map_err(SecretsError::Read)?;
    if !metadata.is_file() {
        return Err(SecretsError::Content {
            path: path.into(),
            what: "is no file".into(),
        });
    }
    let own = rustix::process::geteuid().as_raw();
    if metadata.mode() & 0o077 != 0 {
        return Err(SecretsError::Mode {
            path: path.into(),
            mode: metadata.mode() & 0o7777,
        });
    }
    if metadata.uid() != own && metadata.uid() != 0 {
        return Err(SecretsError::Owner {
            path: path.into(),
            owner: metadata.uid(),
        });
    }
    let mut text = String::new();
    file.take(MAX_FILE)
        .read_to_string(&mut text)
        .map_err(SecretsError::Read)?;
    parse(&text).map_err(|what| SecretsError::Content {
        path: path.into(),
        what,
    })
}

pub(super) fn read(variables: &mut Variables<'_>) -> Option<CredentialSource> {
    let (name, file) = ("GATEWAY_CREDENTIALS", "GATEWAY_CREDENTIALS_FILE");
    let fix =
        "give one credential, or two during a rotation with a comma in between, the new one first";
    match (variables.text(name), variables.text(file)) {
        (Some(_), Some(_)) => {
            let what = "is set beside GATEWAY_CREDENTIALS_FILE";
            variables.faults.add(name, what, "set only one of the two");
            None
        }
        (None, None) => {
            let what = "is not set, and neither is GATEWAY_CREDENTIALS_FILE";
            variables.faults.add(name, what, fix);
            None
        }
        (Some(text), None) => match parse(&text) {
            Ok(credentials) => Some(CredentialSource::Fixed(credentials)),
            Err(what) => {
                variables.faults.add(name, what, fix);
                None
            }
        },
        (None, Some(path)) => {
            let source = CredentialSource::File(path.into());
            match source.load() {
                Ok(_) => Some(source),
                Err(error) => {
                    let what = match std::error::Error::source(&error) {
                        Some(cause) => format!("cannot be used: {error}: {cause}"),
                        None => format!("cannot be used: {error}"),
                    };
                    let fix = "name a file of mode 600 with one or two credentials in it";
                    variables.faults.add(file, what, fix);
                    None
                }
            }
        }
    }
}

/// Credentials with commas or line ends in between.
fn parse(text: &str) -> Result<Credentials, String> {
    let words = text.split([',', '\n']).map(str::trim);
    let credentials: Result<Vec<Credential>, _> = words
        .filter(|word| !word.is_empty())
        .map(str::parse)
        .collect();
    let credentials = credentials.map_err(|error| format!("holds something that is {error}"))?;
    match credentials.as_slice() {
        [_] => {}
        [one, other] if one.id() != other.id() => {}
        [_, _] => return Err("holds the same credential twice".into()),
        other => return Err(format!("holds {} credentials", other.len())),
    }
    Ok(Credentials(credentials))
}
