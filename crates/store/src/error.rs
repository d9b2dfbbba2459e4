//! Why the store could not do what it was asked for.

use std::path::PathBuf;

/// What the store was doing when it failed, and on what.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The address of the database is of no kind that is known.
    #[error("`{given}` is no database address: one is sqlite:///PATH or postgres://…")]
    Address {
        /// What was given, without a password.
        given: String,
    },
    /// The database cannot be opened.
    #[error("opening the database at {address}")]
    Open {
        /// Where it is, without a password.
        address: String,
        /// Why not.
        #[source]
        source: sqlx::Error,
    },
    /// A statement failed.
    #[error("{doing}")]
    Statement {
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        #[source]
        source: sqlx::Error,
    },
    /// The tables are of another age than this program.
    #[error("the database has tables of version {found}, and this program wants {wanted}; {hint}")]
    Version {
        /// What the database has.
        found: i64,
        /// What this program needs.
        wanted: i64,
        /// What to do.
        hint: &'static str,
    },
    /// A row holds what this program never writes.
    #[error("the column {column} holds `{found}`, which nothing here has written")]
    Row {
        /// Which column.
        column: &'static str,
        /// What it holds.
        found: String,
    },
    /// A name or address is taken.
    #[error("{what} is taken")]
    Taken {
        /// What.
        what: &'static str,
    },
    /// Somebody else changed it since it was read.
    #[error("{what} was changed by somebody else in the meantime")]
    Conflict {
        /// What.
        what: &'static str,
    },
    /// A secret cannot be opened: another master key sealed it, or it was moved or altered.
    #[error("the secret `{name}` cannot be opened with this master key")]
    Sealed {
        /// Which one.
        name: String,
    },
    /// The system's source of randomness failed.
    #[error("the system gives no random numbers")]
    Random,
    /// The file of the master key cannot be used.
    #[error("the master key in {path}: {why}")]
    MasterKey {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of the object store could not be kept or read.
    #[error("{doing} the object {name}")]
    Object {
        /// What was being done.
        doing: &'static str,
        /// Which object.
        name: String,
        /// Why it failed.
        #[source]
        source: object_store::Error,
    },
    /// A file that a row names is not in the object store.
    #[error("the object {name} is not there; restore it from a backup")]
    Lost {
        /// Which object.
        name: String,
    },
    /// A file in the object store is not what was stored there.
    #[error("the object {name} is not what was stored there; restore it from a backup")]
    Altered {
        /// Which object.
        name: String,
    },
    /// A document could not be written or read as JSON.
    #[error("the document in {column}")]
    Document {
        /// Which column.
        column: &'static str,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
}

impl StoreError {
    /// Whether the database refused because a unique value is there already.
    pub(crate) fn is_unique(error: &sqlx::Error) -> bool {
        matches!(error, sqlx::Error::Database(error) if error.is_unique_violation())
    }
}
