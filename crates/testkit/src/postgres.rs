//! Databases of a test's own on the PostgreSQL that `make test` starts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use glovebox_protocol::ids::SandboxId;

use crate::paths::variable;

/// Where Debian puts the programs of each version of PostgreSQL.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The address of a new, empty database.
///
/// # Errors
/// When there is no server for tests, or it refuses.
pub fn postgres_database() -> Result<String> {
    let socket = variable("GLOVEBOX_TEST_POSTGRES").context(
        "GLOVEBOX_TEST_POSTGRES does not say where PostgreSQL for tests is; run `make test`",
    )?;
    let name = format!("gb_{}", SandboxId::new()).replace('-', "_");
    let made = Command::new(psql()?)
        .args(["--no-psqlrc", "--quiet", "--username=glovebox", "--host"])
        .arg(&socket)
        .arg("--command")
        .arg(format!("CREATE DATABASE {name}"))
        .arg("postgres")
        .output()
        .context("asking PostgreSQL for a database")?;
    let complaint = String::from_utf8_lossy(&made.stderr);
    ensure!(
        made.status.success(),
        "making the database {name}: {complaint}"
    );
    let socket = Path::new(&socket).display();
    Ok(format!(
        "postgres://glovebox@localhost/{name}?host={socket}"
    ))
}

fn psql() -> Result<PathBuf> {
    let versions = fs_err::read_dir(VERSIONS).context("looking for PostgreSQL")?;
    let mut programs: Vec<_> = versions
        .flatten()
        .map(|version| version.path().join("bin/psql"))
        .filter(|program| program.is_file())
        .collect();
    programs.sort();
    programs
        .pop()
        .with_context(|| format!("there is no psql below {VERSIONS}"))
}
