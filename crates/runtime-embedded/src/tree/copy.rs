//! Copies files and folders of the host into a tree.
//!
//! What arrives is plain: files with mode 0644 or 0755, folders with 0755, links that stay inside
//! what was copied. It does not decide what is copied.

use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use fs_err as fs;

/// Copies one file, following links, over whatever was there.
pub(crate) fn file(from: &Path, to: &Path) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        folder(parent)?;
    }
    if to.symlink_metadata().is_ok() {
        fs::remove_file(to)?;
    }
    fs::copy(from, to)?;
    let executable = fs::metadata(from)?.permissions().mode() & 0o111 != 0;
    set_mode(to, if executable { 0o755 } else { 0o644 })
}

/// Writes a text file with mode 0644.
pub(crate) fn text(to: &Path, content: &str) -> io::Result<()> {
    if let Some(parent) = to.parent() {
        folder(parent)?;
    }
    fs::write(to, content)?;
    set_mode(to, 0o644)
}

/// Makes a folder and its parents.
pub(crate) fn folder(path: &Path) -> io::Result<()> {
    fs::create_dir_all(path)
}

/// Makes a link, relative as given.
pub(crate) fn link(target: &str, at: &Path) -> io::Result<()> {
    if let Some(parent) = at.parent() {
        folder(parent)?;
    }
    symlink(target, at)
        .map_err(|e| io::Error::new(e.kind(), format!("linking {}: {e}", at.display())))
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, PermissionsExt::from_mode(mode))
}

/// Copies a folder with everything below it that `wanted` takes; `wanted` sees paths relative to
/// the folder. A link to something inside the folder stays a link; one that leads out of it
/// becomes a copy of the file behind it; other links and special files are left out.
pub(crate) fn tree(from: &Path, to: &Path, wanted: &dyn Fn(&Path) -> bool) -> io::Result<()> {
    below(&fs::canonicalize(from)?, to, Path::new(""), wanted)
}

fn below(
    root: &Path,
    to: &Path,
    relative: &Path,
    wanted: &dyn Fn(&Path) -> bool,
) -> io::Result<()> {
    folder(&to.join(relative))?;
    for entry in fs::read_dir(root.join(relative))? {
        let entry = entry?;
        let relative = relative.join(entry.file_name());
        if !wanted(&relative) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            below(root, to, &relative, wanted)?;
        } else if kind.is_symlink() {
            copy_link(root, to, &relative)?;
        } else if kind.is_file() {
            file(&entry.path(), &to.join(&relative))?;
        }
    }
    Ok(())
}

fn copy_link(root: &Path, to: &Path, relative: &Path) -> io::Result<()> {
    let Ok(real) = fs::canonicalize(root.join(relative)) else {
        return Ok(()); // a dangling link
    };
    match real.strip_prefix(root) {
        Ok(inside) => {
            let target = relative_to(relative.parent().unwrap_or(Path::new("")), inside);
            link(&target.to_string_lossy(), &to.join(relative))
        }
        Err(_) if real.is_file() => file(&real, &to.join(relative)),
        Err(_) => Ok(()),
    }
}

/// The way from a folder to a path, both relative to the same root and without `..`.
pub(crate) fn relative_to(folder: &Path, target: &Path) -> PathBuf {
    let common = folder
        .components()
        .zip(target.components())
        .take_while(|(a, b)| a == b)
        .count();
    let up = folder
        .components()
        .skip(common)
        .map(|_| Component::ParentDir);
    up.chain(target.components().skip(common)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_from_one_place_to_another_is_relative() {
        assert_eq!(
            relative_to(Path::new("usr/bin"), Path::new("usr/bin/dash")),
            Path::new("dash")
        );
        assert_eq!(
            relative_to(Path::new("etc"), Path::new("usr/share/x")),
            Path::new("../usr/share/x")
        );
    }

    #[test]
    fn links_out_of_a_folder_become_files_and_special_bits_are_dropped() {
        let from = tempfile::tempdir().unwrap();
        let outside = tempfile::NamedTempFile::new().unwrap();
        fs::write(outside.path(), "out").unwrap();
        let inside = from.path().join("program");
        fs::write(&inside, "in").unwrap();
        set_mode(&inside, 0o4755).unwrap();
        symlink(outside.path(), from.path().join("out")).unwrap();
        symlink("program", from.path().join("alias")).unwrap();
        symlink("nowhere", from.path().join("dangling")).unwrap();

        let into = tempfile::tempdir().unwrap();
        let to = into.path().join("copy");
        tree(from.path(), &to, &|_| true).unwrap();
        assert_eq!(fs::read_to_string(to.join("out")).unwrap(), "out");
        assert!(fs::symlink_metadata(to.join("out")).unwrap().is_file());
        assert_eq!(
            fs::read_link(to.join("alias")).unwrap(),
            Path::new("program")
        );
        assert!(fs::symlink_metadata(to.join("dangling")).is_err());
        assert_eq!(
            fs::metadata(to.join("program"))
                .unwrap()
                .permissions()
                .mode()
                & 0o7777,
            0o755
        );
    }
}
