//! What was put into the sandboxes of threads: each file once, and how much of the input limits
//! that has used.

use glovebox_protocol::ids::SandboxId;

use crate::database::{Columns as _, Store, statement};
use crate::error::StoreError;

/// A file that was put into a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The id of the attachment, artifact or knowledge file.
    pub source: String,
    /// Its name in the sandbox.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}

impl Store {
    /// What was put into a sandbox of a thread.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn staged(&self, lease: SandboxId) -> Result<Vec<Staged>, StoreError> {
        let rows =
            sqlx::query("SELECT source_id, name, bytes FROM staged_files WHERE lease_id = $1")
                .bind(lease.to_string())
                .fetch_all(&self.pool)
                .await
                .map_err(statement("listing what was put into a sandbox"))?;
        rows.iter()
            .map(|row| {
                Ok(Staged {
                    source: row.text("source_id")?,
                    name: row.text("name")?,
                    bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
                })
            })
            .collect()
    }

    /// Notes that a file was put into a sandbox of a thread.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn keep_staged(&self, lease: SandboxId, staged: &Staged) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO staged_files (lease_id, source_id, name, bytes) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (lease_id, source_id) DO NOTHING",
        )
        .bind(lease.to_string())
        .bind(&staged.source)
        .bind(&staged.name)
        .bind(i64::try_from(staged.bytes).unwrap_or(i64::MAX))
        .execute(&self.pool)
        .await
        .map(|_| ())
        .map_err(statement("noting what was put into a sandbox"))
    }
}
