//! The database that every test of this program has for itself.

use std::path::Path;

/// A file of SQLite.
pub(crate) fn address(folder: &Path) -> String {
    format!("sqlite://{}", folder.join("gb.db").display())
}
