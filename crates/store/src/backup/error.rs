//! Why there is no backup, or nothing was restored from one.

use std::io;

use super::object::BackedUpFile;
use crate::error::StoreError;

/// What a backup or a restore was doing when it failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// The file cannot be written.
    #[error("writing the backup")]
    Write(#[source] io::Error),
    /// The file cannot be read.
    #[error("reading the backup")]
    Read(#[source] io::Error),
    /// A table's rows cannot be read or written.
    #[error("{doing} the table {table}")]
    Rows {
        /// What was being done.
        doing: &'static str,
        /// Which table.
        table: &'static str,
        /// Why it failed.
        #[source]
        source: sqlx::Error,
    },
    /// An object changed between two looks at it.
    #[error("the object {id} changed while it was copied")]
    Unsteady {
        /// Which one.
        id: BackedUpFile,
    },
    /// The file is something else.
    #[error("it is no backup that `glovebox backup` made")]
    NoBackup,
    /// The file is of a format that this program does not know.
    #[error("the backup is of format {found}, and this program reads format {known}")]
    Format {
        /// What the file says.
        found: u32,
        /// What is known.
        known: u32,
    },
    /// The tables in the file are of a newer program.
    #[error("the backup has tables of version {found}, and this program knows up to {known}")]
    Newer {
        /// What the file says.
        found: i64,
        /// What is known.
        known: i64,
    },
    /// The file has no end.
    #[error("the backup is cut off at byte {at}")]
    Cut {
        /// Where.
        at: u64,
    },
    /// The file is not as it was written.
    #[error("the backup is damaged before byte {at}: {what}")]
    Damaged {
        /// Where that was seen.
        at: u64,
        /// What was seen.
        what: &'static str,
    },
    /// The database is somebody's already.
    #[error("the database is not empty: there are rows in the table {table}")]
    NotEmpty {
        /// Where rows were found first.
        table: &'static str,
    },
    /// The database has no rows, but tables that the backup's rows do not fit into.
    #[error("the database has empty tables of version {found}, and the backup those of {wanted}")]
    TablesNewer {
        /// What the database has.
        found: i64,
        /// What the backup has.
        wanted: i64,
    },
    /// Another object lies under the same id.
    #[error("the object {id} is there already, with other contents")]
    ObjectTaken {
        /// Which one.
        id: BackedUpFile,
    },
    /// The database or the object store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    /// What whoever asked for it can do.
    #[must_use]
    pub const fn fix(&self) -> Option<&'static str> {
        match self {
            Self::NoBackup => Some("name a file that `glovebox backup` has written"),
            Self::Format { .. } | Self::Newer { .. } => {
                Some("restore it with the Glovebox that made it, or with a newer one")
            }
            Self::Cut { .. } | Self::Damaged { .. } => {
                Some("copy it once more from where it was kept, or take another one")
            }
            Self::NotEmpty { .. } => Some(
                "name an empty one with --database, or another folder with --server-data; \
                 nothing is ever restored over data",
            ),
            Self::TablesNewer { .. } => Some("name a database without any tables"),
            Self::ObjectTaken { .. } => Some(
                "move the folder `objects` out of the server's folder, or name another one with \
                 --server-data",
            ),
            Self::Unsteady { .. } => Some("make the backup once more"),
            Self::Write(_) | Self::Read(_) | Self::Rows { .. } | Self::Store(_) => None,
        }
    }
}
