//! Files that left a sandbox: each save of a name is a version of its own.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ArtifactId, ExecutionId, SandboxId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::access::{Access, Permission};
use crate::database::{Columns as _, Store, Transaction, now_ms, statement};
use crate::error::StoreError;

/// One version of a file that left a sandbox.
#[derive(Debug, Clone)]
pub struct Artifact {
    /// Its id; its bytes lie under it, never under its name.
    pub id: ArtifactId,
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// The sandbox that it came out of.
    pub lease_id: SandboxId,
    /// The execution after which it was collected.
    pub execution_id: ExecutionId,
    /// Its path in the sandbox, percent-encoded: display data from a sandbox.
    pub name: String,
    /// Counts up from 1 with each save of the name in the sandbox.
    pub version: i64,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, by content.
    pub media_type: String,
    /// When it was collected.
    pub created_at: DateTime<Utc>,
}

/// What a new artifact is made of.
#[derive(Debug, Clone)]
pub struct NewArtifact {
    /// Its id.
    pub id: ArtifactId,
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// The sandbox that it came out of.
    pub lease_id: SandboxId,
    /// The execution after which it was collected.
    pub execution_id: ExecutionId,
    /// Its path in the sandbox, percent-encoded.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, by content.
    pub media_type: String,
}

const COLUMNS: &str = "artifacts.id, artifacts.workspace_id, artifacts.lease_id, \
     artifacts.execution_id, artifacts.name, artifacts.version, artifacts.bytes, \
     artifacts.sha256, artifacts.media_type, artifacts.created_at";

fn read(row: &AnyRow) -> Result<Artifact, StoreError> {
    Ok(Artifact {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        lease_id: row.word("lease_id")?,
        execution_id: row.word("execution_id")?,
        name: row.text("name")?,
        version: row.number("version")?,
        bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
        sha256: row.text("sha256")?,
        media_type: row.text("media_type")?,
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// Artifacts that whoever asks may see, the newest first: those older than `before`, of one
    /// sandbox or of all, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn artifacts_of(
        &self,
        access: &Access,
        lease: Option<SandboxId>,
        before: Option<ArtifactId>,
        limit: u32,
    ) -> Result<Vec<Artifact>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM artifacts JOIN leases ON leases.id = artifacts.lease_id \
             WHERE artifacts.workspace_id = $1 AND artifacts.id < $2 \
             AND ($3 = '' OR artifacts.lease_id = $3) \
             AND (leases.user_id = $4 OR (leases.user_id IS NULL \
             AND (leases.api_key_id = $5 OR $6 = 1))) \
             ORDER BY artifacts.id DESC LIMIT $7"
        )))
        .bind(access.workspace().to_string())
        .bind(before.map_or_else(|| "g".into(), |id| id.to_string()))
        .bind(lease.map_or_else(String::new, |id| id.to_string()))
        .bind(access.user().map_or_else(String::new, |id| id.to_string()))
        .bind(
            access
                .api_key()
                .map_or_else(String::new, |id| id.to_string()),
        )
        .bind(i64::from(access.may(Permission::Manage)))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing artifacts"))?;
        rows.iter().map(read).collect()
    }

    /// The artifact with this id, if whoever asks may see the sandbox that it came out of.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn artifact_of(
        &self,
        access: &Access,
        id: ArtifactId,
    ) -> Result<Option<Artifact>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM artifacts WHERE id = $1 AND workspace_id = $2"
        )))
        .bind(id.to_string())
        .bind(access.workspace().to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading an artifact"))?;
        let Some(artifact) = row.as_ref().map(read).transpose()? else {
            return Ok(None);
        };
        let seen = self.lease_of(access, artifact.lease_id).await?;
        Ok(seen.map(|_| artifact))
    }

    /// The workspace that an artifact belongs to: who may see it is asked next.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace_of_artifact(
        &self,
        id: ArtifactId,
    ) -> Result<Option<WorkspaceId>, StoreError> {
        let row = sqlx::query("SELECT workspace_id FROM artifacts WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("looking for an artifact"))?;
        row.map(|row| row.word("workspace_id")).transpose()
    }

    /// The newest version of a name that came out of a sandbox.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn newest_artifact(
        &self,
        lease: SandboxId,
        name: &str,
    ) -> Result<Option<Artifact>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM artifacts WHERE lease_id = $1 AND name = $2 \
             ORDER BY version DESC LIMIT 1"
        )))
        .bind(lease.to_string())
        .bind(name)
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for an artifact"))?;
        row.as_ref().map(read).transpose()
    }
}

impl Transaction {
    /// Keeps an artifact as the next version of its name, and says which version it is.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn create_artifact(&mut self, new: &NewArtifact) -> Result<i64, StoreError> {
        let row = sqlx::query(
            "SELECT COALESCE(MAX(version), 0) AS n FROM artifacts \
             WHERE lease_id = $1 AND name = $2",
        )
        .bind(new.lease_id.to_string())
        .bind(&new.name)
        .fetch_one(&mut *self.inner)
        .await
        .map_err(statement("counting versions"))?;
        let version = row.number("n")? + 1;
        sqlx::query(
            "INSERT INTO artifacts (id, workspace_id, lease_id, execution_id, name, version, \
             bytes, sha256, media_type, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        )
        .bind(new.id.to_string())
        .bind(new.workspace_id.to_string())
        .bind(new.lease_id.to_string())
        .bind(new.execution_id.to_string())
        .bind(&new.name)
        .bind(version)
        .bind(i64::try_from(new.bytes).unwrap_or(i64::MAX))
        .bind(&new.sha256)
        .bind(&new.media_type)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("keeping an artifact"))?;
        Ok(version)
    }
}
