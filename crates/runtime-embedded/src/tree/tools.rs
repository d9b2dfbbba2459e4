//! Copies the fixed list of tools that `!command` users expect.
//!
//! It does not copy their libraries; `libraries` does.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use fs_err as fs;

use super::copy;
use super::elf;
use super::error::{SetupError, file};
use super::libraries::in_tree;

const DOING: &str = "copying tools";

/// Without these a sandbox is not made.
const REQUIRED: &str = "sh bash \
    basename cat chmod cksum comm cp csplit cut date dd df dirname du echo env expand expr factor false fmt fold \
    head id join link ln ls md5sum mkdir mkfifo mktemp mv nice nl nohup nproc numfmt od paste printenv printf ptx \
    pwd readlink realpath rm rmdir seq sha1sum sha256sum sha512sum shuf sleep sort split stat sum sync tac tail \
    tee test touch tr true truncate tsort tty uname unexpand uniq unlink wc whoami yes timeout base64 base32 \
    grep egrep fgrep sed awk find xargs tar gzip gunzip zcat diff cmp";

/// These come along where the machine has them.
const OPTIONAL: &str = "[ arch b2sum basenc dir dircolors groups install logname pathchk pr sha224sum sha384sum \
    shred stdbuf stty users vdir \
    bzip2 bunzip2 bzcat xz unxz xzcat zip unzip zipinfo file which diff3 sdiff rev column hexdump";

/// Optional ones that are worth a note where they are missing.
const NOTED: &str = "bzip2 xz zip unzip file which";

const FOLDERS: [&str; 3] = ["/usr/bin", "/bin", "/usr/local/bin"];

/// Copies the tools and gives a note on each one that is missing and would be missed.
pub(crate) fn install(tree: &Path) -> Result<Vec<String>, SetupError> {
    let mut missing = Vec::new();
    for name in REQUIRED.split_whitespace() {
        if !copy_tool(name, tree)? {
            missing.push(name.to_owned());
        }
    }
    if !missing.is_empty() {
        return Err(SetupError::NoTools { tools: missing });
    }
    let noted: HashSet<&str> = NOTED.split_whitespace().collect();
    let mut notes = Vec::new();
    for name in OPTIONAL.split_whitespace() {
        if !copy_tool(name, tree)? && noted.contains(name) {
            notes.push(format!(
                "this machine has no `{name}`, so sandboxes will have none"
            ));
        }
    }
    copy_magic(tree)?;
    Ok(notes)
}

/// The program or script behind a tool's name, where this machine has one that works in a sandbox.
pub(crate) fn on_host(name: &str) -> Option<PathBuf> {
    FOLDERS
        .iter()
        .find_map(|folder| real_tool(&Path::new(folder).join(name)))
}

/// Copies one tool; whether the machine has it in a form that works in a sandbox.
pub(crate) fn copy_tool(name: &str, tree: &Path) -> Result<bool, SetupError> {
    let failed = file(DOING);
    let Some(real) = on_host(name) else {
        return Ok(false);
    };
    let at = in_tree(tree, &real);
    if !at.exists() {
        copy::file(&real, &at).map_err(&failed)?;
        copy::set_mode(&at, 0o755).map_err(&failed)?;
    }
    let alias = tree.join("usr/bin").join(name);
    if alias.symlink_metadata().is_err() {
        let folder = Path::new("usr/bin");
        let target = copy::relative_to(folder, at.strip_prefix(tree).unwrap_or(&at));
        copy::link(&target.to_string_lossy(), &alias).map_err(&failed)?;
    }
    Ok(true)
}

/// The file behind a tool's name, if it is a program or a script for a shell that sandboxes have.
fn real_tool(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok().filter(|real| real.is_file())?;
    let usable = elf::is_elf(&real).ok()? || is_shell_script(&real);
    usable.then_some(real)
}

fn is_shell_script(path: &Path) -> bool {
    let Ok(opened) = fs::File::open(path) else {
        return false;
    };
    let mut line = Vec::new();
    let read = BufReader::new(opened.take(128)).read_until(b'\n', &mut line);
    let line = String::from_utf8_lossy(&line);
    let program = line
        .trim_start_matches("#!")
        .split_whitespace()
        .next()
        .unwrap_or_default();
    read.is_ok()
        && line.starts_with("#!")
        && ["sh", "bash"]
            .iter()
            .any(|shell| program.ends_with(&format!("/{shell}")))
}

/// The data that `file` tells types by.
fn copy_magic(tree: &Path) -> Result<(), SetupError> {
    if !tree.join("usr/bin/file").exists() {
        return Ok(());
    }
    for path in [
        "/usr/lib/file/magic.mgc",
        "/usr/share/misc/magic.mgc",
        "/usr/share/file/misc/magic.mgc",
    ] {
        if Path::new(path).is_file() {
            copy::file(Path::new(path), &in_tree(tree, Path::new(path))).map_err(file(DOING))?;
            // Its libraries look in one of these, as the distribution built them.
            if path == "/usr/lib/file/magic.mgc" {
                let alias = tree.join("usr/share/misc/magic.mgc");
                copy::link("../../lib/file/magic.mgc", &alias).map_err(file(DOING))?;
            }
            return Ok(());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_arrives_under_its_own_name_and_the_asked_one() {
        let tree = tempfile::tempdir().unwrap();
        assert!(copy_tool("sh", tree.path()).unwrap());
        assert!(tree.path().join("usr/bin/sh").exists());
        let real = fs::canonicalize("/bin/sh").unwrap();
        assert!(in_tree(tree.path(), &real).is_file());
    }

    #[test]
    fn a_tool_that_needs_another_interpreter_is_not_usable() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("tool");
        fs::write(&script, "#!/usr/bin/perl\n").unwrap();
        assert_eq!(real_tool(&script), None);
        fs::write(&script, "#!/bin/sh\n").unwrap();
        assert!(real_tool(&script).is_some());
    }

    #[test]
    fn a_tool_that_the_machine_lacks_is_told() {
        let tree = tempfile::tempdir().unwrap();
        assert!(!copy_tool("no-such-tool", tree.path()).unwrap());
    }
}
