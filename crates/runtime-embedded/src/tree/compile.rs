//! Compiles Python files of a tree, so that no start of an interpreter has to.

use std::path::Path;
use std::process::Command;

use super::command;
use super::error::SetupError;

const DOING: &str = "compiling Python files";

/// Compiles every Python file below a folder of a tree, with the path that it has in a sandbox,
/// and so that an import need not look at the source's time: a tree is read-only, so the source
/// cannot change.
///
/// The interpreter is the host's that the tree's is a copy of; it runs nothing of what it compiles.
pub(crate) fn below(interpreter: &Path, tree: &Path, folder: &Path) -> Result<(), SetupError> {
    let mut command = Command::new(interpreter);
    command
        .args(["-I", "-S", "-m", "compileall", "-q", "-j", "2"])
        .args(["--invalidation-mode", "unchecked-hash", "-s"])
        .arg(tree)
        .args(["-p", "/"])
        .arg(folder);
    let finished = command::follow(DOING, &mut command, |_| {})?;
    if finished.status.success() {
        return Ok(());
    }
    Err(SetupError::Failed {
        doing: DOING,
        status: finished.status,
        output: finished.output,
    })
}
