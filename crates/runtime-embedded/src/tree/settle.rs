//! Gives everything in a tree its final mode, whatever this process's own mask, and refuses links
//! that lead out of it.

use std::path::Path;

use fs_err as fs;

use super::copy;
use super::error::{SetupError, file};

/// Settles a whole tree.
pub(crate) fn everything(tree: &Path) -> Result<(), SetupError> {
    below(tree, Path::new(""))
}

fn below(tree: &Path, relative: &Path) -> Result<(), SetupError> {
    let failed = file("setting modes in the new tree");
    copy::set_mode(&tree.join(relative), 0o755).map_err(&failed)?;
    for entry in fs::read_dir(tree.join(relative)).map_err(&failed)? {
        let entry = entry.map_err(&failed)?;
        let relative = relative.join(entry.file_name());
        let kind = entry.file_type().map_err(&failed)?;
        if kind.is_dir() {
            below(tree, &relative)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(entry.path()).map_err(&failed)?;
            if leads_out(&relative, &target) {
                return Err(SetupError::Unwanted {
                    path: relative,
                    what: "a link that leads out of the tree",
                });
            }
        } else {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = entry.metadata().map_err(&failed)?.permissions().mode();
            let mode = if mode & 0o100 == 0 { 0o644 } else { 0o755 };
            copy::set_mode(&entry.path(), mode).map_err(&failed)?;
        }
    }
    Ok(())
}

/// Whether a link, read from outside, leads above the root. Links of a tree go up only at their
/// beginning, so counting is enough; one that goes through another link is not followed.
fn leads_out(at: &Path, target: &Path) -> bool {
    use std::path::Component;
    let mut depth = at.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_out_are_told_from_those_that_stay() {
        assert!(!leads_out(Path::new("mnt/data"), Path::new("../workspace")));
        assert!(leads_out(
            Path::new("mnt/data"),
            Path::new("../../workspace")
        ));
        assert!(leads_out(Path::new("bin"), Path::new("/usr/bin")));
        assert!(!leads_out(Path::new("bin"), Path::new("usr/bin")));
    }
}
