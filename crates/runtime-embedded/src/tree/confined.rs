//! Runs a new tree's own Python in the tree: without network, and as nobody where the set-up runs
//! as root, so that no code of a package ever has the host's rights.
//!
//! It uses the system's `unshare`, `setpriv` and `chroot`, as sandboxes proper need the tree that
//! is being made here.

use std::path::Path;
use std::process::Command;

use fs_err as fs;
use serde::Deserialize;

use super::command;
use super::copy;
use super::error::{SetupError, file};

const DOING: &str = "trying the new tree out";

/// Runs in the tree's folder. `mount` gets relative paths only: nobody may not look them up.
const ENTER: &str = "mount --no-canonicalize -t tmpfs -o mode=1777 tmpfs tmp && \
    exec chroot . /opt/python/bin/python3 -I -B -c \"$0\"";

#[derive(Deserialize)]
struct Finish {
    fonts: Option<FontCache>,
}

#[derive(Deserialize)]
struct FontCache {
    name: String,
    content: String,
}

/// Imports every package inside the tree, and writes the font cache that this yields.
pub(crate) fn finish(tree: &Path) -> Result<(), SetupError> {
    let text = command::answer(DOING, &mut python(tree, include_str!("finish.py")))?;
    // Packages may greet on standard output; the answer is the last line.
    let answer = text.trim_end().rsplit('\n').next().unwrap_or_default();
    let finish: Finish = serde_json::from_str(answer).map_err(|source| SetupError::Answer {
        doing: DOING,
        source,
    })?;
    let folder = tree.join("opt/glovebox/share/matplotlib");
    fs::create_dir_all(&folder).map_err(file(DOING))?;
    if let Some(FontCache { name, content }) = finish.fonts {
        let name = Path::new(&name).file_name().unwrap_or_default();
        copy::text(&folder.join(name), &content).map_err(file(DOING))?;
    }
    Ok(())
}

fn python(tree: &Path, code: &str) -> Command {
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--no-new-privs",
            "unshare",
        ]);
        command
    } else {
        Command::new("unshare")
    };
    command
        .args([
            "--user",
            "--map-root-user",
            "--mount",
            "--net",
            "--ipc",
            "--pid",
            "--fork",
            "--kill-child",
        ])
        .args(["sh", "-c", ENTER, code])
        .current_dir(tree)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/tmp")
        .env("LANG", "C.UTF-8")
        .env("MPLCONFIGDIR", "/tmp/matplotlib")
        .env("OPENBLAS_NUM_THREADS", "1");
    command
}
