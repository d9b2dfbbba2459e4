//! Workspaces and organizations: who shares what, on which profile, within which quotas.

use chrono::{DateTime, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{OrganizationId, ProfileId, WorkspaceId};
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json, unique};
use crate::error::StoreError;

/// How much of everything a workspace may use. Stored as a document: what a newer version has
/// written beside it does not keep this one from reading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quotas {
    /// Sandboxes at once; idle ones count.
    pub max_concurrent: u32,
    /// The largest class of a sandbox.
    pub max_resource_class: ResourceClass,
    /// The longest job, in seconds.
    pub max_job_seconds: u32,
    /// Bytes of artifacts in a day (UTC).
    pub max_artifact_bytes_per_day: u64,
    /// New sandboxes in a rolling hour.
    pub max_jobs_per_hour: u32,
    /// Bytes of all files that people have brought: attachments and the knowledge base. Rows from
    /// before there was such a quota have the usual one.
    #[serde(default = "max_uploaded_bytes")]
    pub max_uploaded_bytes: u64,
}

const fn max_uploaded_bytes() -> u64 {
    10 << 30
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            max_concurrent: 2,
            max_resource_class: ResourceClass::Small,
            max_job_seconds: 3_600,
            max_artifact_bytes_per_day: 1 << 30,
            max_jobs_per_hour: 60,
            max_uploaded_bytes: max_uploaded_bytes(),
        }
    }
}

/// People who work together.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Its id.
    pub id: WorkspaceId,
    /// Its name.
    pub name: String,
    /// The organization that it belongs to.
    pub organization_id: Option<OrganizationId>,
    /// A profile of its own.
    pub profile_id: Option<ProfileId>,
    /// Whether code may run in it.
    pub code_execution: bool,
    /// How much it may use.
    pub quotas: Quotas,
    /// Counts up with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

const COLUMNS: &str = "id, name, organization_id, profile_id, code_execution, quotas, version, \
     created_at";

fn read(row: &AnyRow) -> Result<Workspace, StoreError> {
    Ok(Workspace {
        id: row.word("id")?,
        name: row.text("name")?,
        organization_id: row.maybe_word("organization_id")?,
        profile_id: row.maybe_word("profile_id")?,
        code_execution: row.flag("code_execution")?,
        quotas: row.document("quotas")?,
        version: row.number("version")?,
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// The workspace with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace(&self, id: WorkspaceId) -> Result<Option<Workspace>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM workspaces WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a workspace"))?;
        row.as_ref().map(read).transpose()
    }

    /// The workspace with this name.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace_by_name(&self, name: &str) -> Result<Option<Workspace>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM workspaces WHERE name = $1"
        )))
        .bind(name)
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for a workspace"))?;
        row.as_ref().map(read).transpose()
    }

    /// All workspaces after `after`, by age, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspaces(
        &self,
        after: Option<WorkspaceId>,
        limit: u32,
    ) -> Result<Vec<Workspace>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM workspaces WHERE id > $1 ORDER BY id LIMIT $2"
        )))
        .bind(after.map_or_else(String::new, |id| id.to_string()))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing workspaces"))?;
        rows.iter().map(read).collect()
    }

    /// The profile that an organization holds, if it holds one.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn profile_of_organization(
        &self,
        id: OrganizationId,
    ) -> Result<Option<ProfileId>, StoreError> {
        let row = sqlx::query("SELECT profile_id FROM organizations WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("reading an organization"))?;
        row.map_or(Ok(None), |row| row.maybe_word("profile_id"))
    }
}

impl Transaction {
    /// How many workspaces there are, as these changes see it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn count_workspaces(&mut self) -> Result<i64, StoreError> {
        sqlx::query("SELECT COUNT(*) AS n FROM workspaces")
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting workspaces"))?
            .number("n")
    }

    /// Makes a workspace in which no code may run.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn create_workspace(&mut self, name: &str) -> Result<WorkspaceId, StoreError> {
        let id = WorkspaceId::new();
        sqlx::query(
            "INSERT INTO workspaces (id, name, code_execution, quotas, version, created_at) \
             VALUES ($1, $2, 0, $3, 1, $4)",
        )
        .bind(id.to_string())
        .bind(name)
        .bind(to_json("quotas", &Quotas::default())?)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(unique("making a workspace", "that name of a workspace"))?;
        Ok(id)
    }

    /// The workspace with this id, which nobody else changes until these changes are done. What
    /// is counted against its quotas is so counted once.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hold_workspace(
        &mut self,
        id: WorkspaceId,
    ) -> Result<Option<Workspace>, StoreError> {
        let select = "SELECT 1 FROM workspaces WHERE id = $1 FOR NO KEY UPDATE";
        self.hold(select, &id.to_string(), "holding a workspace")
            .await?;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM workspaces WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&mut *self.inner)
        .await
        .map_err(statement("reading a workspace"))?;
        row.as_ref().map(read).transpose()
    }

    /// Writes a workspace back that was read at `workspace.version`.
    ///
    /// # Errors
    /// When somebody else changed it since, or the name is taken.
    pub async fn update_workspace(&mut self, workspace: &Workspace) -> Result<(), StoreError> {
        let done = sqlx::query(
            "UPDATE workspaces SET name = $2, organization_id = $3, profile_id = $4, \
             code_execution = $5, quotas = $6, version = version + 1 \
             WHERE id = $1 AND version = $7",
        )
        .bind(workspace.id.to_string())
        .bind(&workspace.name)
        .bind(workspace.organization_id.map(|id| id.to_string()))
        .bind(workspace.profile_id.map(|id| id.to_string()))
        .bind(i64::from(workspace.code_execution))
        .bind(to_json("quotas", &workspace.quotas)?)
        .bind(workspace.version)
        .execute(&mut *self.inner)
        .await
        .map_err(unique("changing a workspace", "that name of a workspace"))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Conflict {
                what: "the workspace",
            });
        }
        Ok(())
    }
}
