//! Reads from a program or shared library what the loader will look for.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;
use goblin::elf::Elf;

/// What a dynamically linked object needs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) loader: Option<PathBuf>,
    pub(crate) libraries: Vec<String>,
    /// Its own search folders, with `$ORIGIN` as written.
    pub(crate) folders: Vec<String>,
}

/// Reads the needs of an object; `None` where the file is no ELF object.
pub(crate) fn needs(path: &Path) -> io::Result<Option<Needs>> {
    if !is_elf(path)? {
        return Ok(None);
    }
    let content = fs::read(path)?;
    let elf = Elf::parse(&content).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{}: {error}", path.display()),
        )
    })?;
    // The older form of search folders is ignored where the newer is present, as the loader does.
    let folders = if elf.runpaths.is_empty() {
        &elf.rpaths
    } else {
        &elf.runpaths
    };
    Ok(Some(Needs {
        loader: elf.interpreter.map(PathBuf::from),
        libraries: elf
            .libraries
            .iter()
            .map(|name| (*name).to_owned())
            .collect(),
        folders: folders
            .iter()
            .flat_map(|list| list.split(':'))
            .filter(|folder| !folder.is_empty())
            .map(str::to_owned)
            .collect(),
    }))
}

/// What must be equal for two objects to be loaded into one process: word size, byte order, machine.
pub(crate) fn kind(path: &Path) -> io::Result<Option<[u8; 4]>> {
    let mut head = [0; 20];
    let mut file = fs::File::open(path)?;
    match file.read_exact(&mut head) {
        Ok(()) if head.starts_with(b"\x7fELF") => Ok(Some([head[4], head[5], head[18], head[19]])),
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn is_elf(path: &Path) -> io::Result<bool> {
    Ok(kind(path)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_needs_a_loader_and_a_library() {
        let found = needs(Path::new("/bin/sh")).unwrap().unwrap();
        assert!(found.loader.unwrap().to_string_lossy().contains("ld-linux"));
        assert!(
            found.libraries.iter().any(|name| name == "libc.so.6"),
            "{:?}",
            found.libraries
        );
    }

    #[test]
    fn a_text_is_no_object() {
        assert_eq!(needs(Path::new("/etc/passwd")).unwrap(), None);
    }
}
