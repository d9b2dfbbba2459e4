//! Reading and writing the files of a control group, each with one call.
//!
//! Errors keep the kernel's number, which decides what comes next; [`super::on`] adds the path.

use std::io;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Writes `value` to an existing file.
///
/// # Errors
/// What the kernel says, with its number.
pub(crate) fn write(path: &Path, value: &str) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let written = rustix::io::write(&file, value.as_bytes())?;
    if written == value.len() {
        Ok(())
    } else {
        Err(io::Error::from(io::ErrorKind::WriteZero))
    }
}

/// Reads a whole file.
///
/// # Errors
/// What the kernel says, with its number.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    let mut text = String::new();
    io::Read::read_to_string(&mut std::fs::File::from(file), &mut text)?;
    Ok(text)
}

/// Makes a folder that others may look into.
///
/// # Errors
/// What the kernel says, with its number.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::mkdir(path, Mode::from_raw_mode(0o755))?)
}

/// Removes a group.
///
/// # Errors
/// What the kernel says, with its number.
pub(crate) fn remove_folder(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::rmdir(path)?)
}
