//! Files that left a sandbox: each save of a name is a version of its own.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ArtifactId, ExecutionId, SandboxId, ThreadId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement};
use crate::error::StoreError;
use crate::lease::visible;
use crate::thread::readable_threads;

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
    /// The thread that it belongs to.
    pub thread_id: Option<ThreadId>,
    /// What that is called.
    pub thread_title: Option<String>,
    /// Its path in the sandbox, percent-encoded: display data from a sandbox.
    pub name: String,
    /// Counts up from 1 with each save of the name in the thread, else in the sandbox.
    pub version: i64,
    /// Whether no later version of the name is there.
    pub is_newest: bool,
    /// Whose bytes it has, where a version was restored.
    pub bytes_of: Option<ArtifactId>,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, by content.
    pub media_type: String,
    /// When it was collected.
    pub created_at: DateTime<Utc>,
}

impl Artifact {
    /// Under which id its bytes lie.
    #[must_use]
    pub fn bytes_id(&self) -> ArtifactId {
        self.bytes_of.unwrap_or(self.id)
    }
}

/// Which artifacts a list is to hold.
#[derive(Debug, Clone, Copy, Default)]
pub struct ArtifactFilter {
    /// Those of one sandbox.
    pub lease: Option<SandboxId>,
    /// Those of one thread.
    pub thread: Option<ThreadId>,
    /// The newest version of each name only.
    pub is_newest: bool,
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
     artifacts.execution_id, artifacts.thread_id, artifacts.name, artifacts.version, \
     artifacts.bytes, artifacts.sha256, artifacts.media_type, artifacts.created_at, \
     artifacts.bytes_of, threads.title AS thread_title, \
     CAST(CASE WHEN NOT EXISTS (SELECT 1 FROM artifacts later WHERE later.name = artifacts.name \
     AND later.version > artifacts.version AND later.thread_id = artifacts.thread_id) \
     AND NOT EXISTS (SELECT 1 FROM artifacts later WHERE later.name = artifacts.name \
     AND later.version > artifacts.version AND later.lease_id = artifacts.lease_id) \
     THEN 1 ELSE 0 END AS BIGINT) AS is_newest";

const FROM: &str = "artifacts JOIN leases ON leases.id = artifacts.lease_id \
     LEFT JOIN threads ON threads.id = artifacts.thread_id";

/// The condition that somebody may see an artifact, within a workspace that is proven: those of a
/// thread whoever may read it, others whoever may see the sandbox. The places are those of the user,
/// the key, and whether it manages the workspace.
pub(crate) fn readable(user: &str, key: &str, manages: &str) -> String {
    let threads = readable_threads(user, key, manages);
    let sandboxes = visible(user, key, manages);
    format!(
        "((artifacts.thread_id IS NOT NULL AND {threads}) \
         OR (artifacts.thread_id IS NULL AND {sandboxes}))"
    )
}

fn read(row: &AnyRow) -> Result<Artifact, StoreError> {
    Ok(Artifact {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        lease_id: row.word("lease_id")?,
        execution_id: row.word("execution_id")?,
        thread_id: row.maybe_word("thread_id")?,
        thread_title: row.maybe_text("thread_title")?,
        name: row.text("name")?,
        version: row.number("version")?,
        is_newest: row.flag("is_newest")?,
        bytes_of: row.maybe_word("bytes_of")?,
        bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
        sha256: row.text("sha256")?,
        media_type: row.text("media_type")?,
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// Artifacts that whoever asks may see, the newest first: those older than `before`, at most
    /// `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn artifacts_of(
        &self,
        access: &Access,
        filter: ArtifactFilter,
        before: Option<ArtifactId>,
        limit: u32,
    ) -> Result<Vec<Artifact>, StoreError> {
        let readable = readable("$5", "$6", "$7");
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT * FROM (SELECT {COLUMNS} FROM {FROM} \
             WHERE artifacts.workspace_id = $1 AND artifacts.id < $2 \
             AND ($3 = '' OR artifacts.lease_id = $3) \
             AND ($4 = '' OR artifacts.thread_id = $4) AND {readable}) found \
             WHERE ($8 = 0 OR is_newest = 1) ORDER BY id DESC LIMIT $9"
        )))
        .bind(access.workspace().to_string())
        .bind(before.map_or_else(|| "g".into(), |id| id.to_string()))
        .bind(filter.lease.map_or_else(String::new, |id| id.to_string()))
        .bind(filter.thread.map_or_else(String::new, |id| id.to_string()))
        .bind(access.user_text())
        .bind(access.api_key_text())
        .bind(access.manages())
        .bind(i64::from(filter.is_newest))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing artifacts"))?;
        rows.iter().map(read).collect()
    }

    /// The artifact with this id, if whoever asks may see the thread that it belongs to, or else
    /// the sandbox that it came out of.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn artifact_of(
        &self,
        access: &Access,
        id: ArtifactId,
    ) -> Result<Option<Artifact>, StoreError> {
        let readable = readable("$3", "$4", "$5");
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE artifacts.id = $1 \
             AND artifacts.workspace_id = $2 AND {readable}"
        )))
        .bind(id.to_string())
        .bind(access.workspace().to_string())
        .bind(access.user_text())
        .bind(access.api_key_text())
        .bind(access.manages())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading an artifact"))?;
        row.as_ref().map(read).transpose()
    }

    /// All versions of an artifact's name in its thread, else in its sandbox, the newest first:
    /// those older than `before`, at most `limit`. Who sees one sees all.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn versions_of(
        &self,
        artifact: &Artifact,
        before: Option<ArtifactId>,
        limit: u32,
    ) -> Result<Vec<Artifact>, StoreError> {
        let (column, value) = match artifact.thread_id {
            Some(thread) => ("artifacts.thread_id", thread.to_string()),
            None => ("artifacts.lease_id", artifact.lease_id.to_string()),
        };
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE {column} = $1 AND artifacts.name = $2 \
             AND artifacts.id < $3 ORDER BY artifacts.id DESC LIMIT $4"
        )))
        .bind(value)
        .bind(&artifact.name)
        .bind(before.map_or_else(|| "g".into(), |id| id.to_string()))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing the versions of an artifact"))?;
        rows.iter().map(read).collect()
    }

    /// The newest version of each name that code of a thread has saved, for the system itself, the
    /// newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn newest_of_thread(&self, thread: ThreadId) -> Result<Vec<Artifact>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT * FROM (SELECT {COLUMNS} FROM {FROM} WHERE artifacts.thread_id = $1) found \
             WHERE is_newest = 1 ORDER BY id DESC"
        )))
        .bind(thread.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing the artifacts of a thread"))?;
        rows.iter().map(read).collect()
    }

    /// The artifact with this id, for the system itself.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn artifact(&self, id: ArtifactId) -> Result<Option<Artifact>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE artifacts.id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading an artifact"))?;
        row.as_ref().map(read).transpose()
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

    /// Whether what a sandbox has under a name is kept already: the newest version of the name in its
    /// thread, else in the sandbox itself, has the same bytes, or the version that came out of it or
    /// went into it last has. The two differ after an older version was restored, until that is put
    /// into the sandbox.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn has_artifact(
        &self,
        lease: SandboxId,
        name: &str,
        sha256: &str,
    ) -> Result<bool, StoreError> {
        const OF_NAME: &str = "SELECT id FROM artifacts WHERE name = $2 AND (lease_id = $1 OR \
             thread_id = (SELECT thread_id FROM leases WHERE id = $1))";
        const IN_SANDBOX: &str = "(lease_id = $1 AND bytes_of IS NULL OR id IN \
             (SELECT source_id FROM staged_files WHERE lease_id = $1))";
        const NEWEST: &str = "ORDER BY version DESC LIMIT 1";
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT id FROM artifacts WHERE sha256 = $3 AND (id = ({OF_NAME} {NEWEST}) \
             OR id = ({OF_NAME} AND {IN_SANDBOX} {NEWEST}))"
        )))
        .bind(lease.to_string())
        .bind(name)
        .bind(sha256)
        .fetch_optional(&self.pool)
        .await
        .map(|row| row.is_some())
        .map_err(statement("looking for an artifact"))
    }
}

impl Transaction {
    /// Keeps an artifact as the next version of its name in the thread of its sandbox, else in the
    /// sandbox itself, and says which version it is.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn create_artifact(&mut self, new: &NewArtifact) -> Result<i64, StoreError> {
        let row = sqlx::query("SELECT thread_id FROM leases WHERE id = $1")
            .bind(new.lease_id.to_string())
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("looking for the thread of a sandbox"))?;
        let thread: Option<ThreadId> = row.maybe_word("thread_id")?;
        if let Some(thread) = thread {
            // Versions count up one after the other.
            self.hold_thread(thread).await?;
        }
        let version = self.next_version(thread, new.lease_id, &new.name).await?;
        self.insert_artifact(new, thread, version, None).await?;
        Ok(version)
    }

    /// Makes an older version the newest one again: a new version with its bytes, which belongs to a
    /// thread that is held. Says which version it is.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn restore_artifact(
        &mut self,
        id: ArtifactId,
        old: &Artifact,
    ) -> Result<i64, StoreError> {
        let version = self
            .next_version(old.thread_id, old.lease_id, &old.name)
            .await?;
        let new = NewArtifact {
            id,
            workspace_id: old.workspace_id,
            lease_id: old.lease_id,
            execution_id: old.execution_id,
            name: old.name.clone(),
            bytes: old.bytes,
            sha256: old.sha256.clone(),
            media_type: old.media_type.clone(),
        };
        self.insert_artifact(&new, old.thread_id, version, Some(old.bytes_id()))
            .await?;
        Ok(version)
    }

    async fn next_version(
        &mut self,
        thread: Option<ThreadId>,
        lease: SandboxId,
        name: &str,
    ) -> Result<i64, StoreError> {
        let (column, value) = match thread {
            Some(thread) => ("thread_id", thread.to_string()),
            None => ("lease_id", lease.to_string()),
        };
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT COALESCE(MAX(version), 0) AS n FROM artifacts WHERE {column} = $1 AND name = $2"
        )))
        .bind(value)
        .bind(name.to_owned())
        .fetch_one(&mut *self.inner)
        .await
        .map_err(statement("counting versions"))?;
        Ok(row.number("n")? + 1)
    }

    async fn insert_artifact(
        &mut self,
        new: &NewArtifact,
        thread: Option<ThreadId>,
        version: i64,
        bytes_of: Option<ArtifactId>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO artifacts (id, workspace_id, lease_id, execution_id, name, version, \
             bytes, sha256, media_type, created_at, thread_id, bytes_of) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
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
        .bind(thread.map(|id| id.to_string()))
        .bind(bytes_of.map(|id| id.to_string()))
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("keeping an artifact"))
    }
}
