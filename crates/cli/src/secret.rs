//! Secrets in files: read only where nobody else can, written so that nobody else can.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::str::FromStr;

use fs_err::os::unix::fs::OpenOptionsExt as _;

use crate::failure::{Failure, reason, shown, unreadable};

/// Longest file that is read for a secret, in bytes.
const MAX_SECRET: u64 = 4096;

/// Reads a secret. White space around it does not count.
pub(crate) fn read<T>(path: &Path) -> Result<T, Failure>
where
    T: FromStr<Err: std::error::Error + Send + Sync + 'static>,
{
    // Without waiting: a pipe in the file's place would never open.
    let file = fs_err::OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| unreadable(path, &error))?;
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if !metadata.is_file() {
        return Err(Failure::bad_input(format!("{} is no file", shown(path))));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(Failure::Input {
            problem: format!("{} is a secret that others can read", shown(path)),
            fix: Some(format!("chmod 600 {}", shown(path))),
            cause: None,
        });
    }
    let mut text = String::new();
    file.take(MAX_SECRET)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(path, &error))?;
    text.trim()
        .parse()
        .map_err(|error: T::Err| Failure::input(format!("cannot use {}", shown(path)), error))
}

/// Writes a secret into a new file that only its owner can read.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: &std::io::Error| Failure::Input {
        problem: format!("cannot write {}", shown(path)),
        fix: (error.kind() == std::io::ErrorKind::AlreadyExists)
            .then(|| "name another file: a secret is never written over".into()),
        cause: Some(reason(error).into()),
    };
    let mut file = fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| failed(&error))?;
    writeln!(file, "{text}").map_err(|error| failed(&error))?;
    file.sync_all().map_err(|error| failed(&error))
}
