//! What the gate refused lately, for those who look after a workspace.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{DenialId, WorkspaceId};

use crate::database::{Columns as _, Store, now_ms, statement};
use crate::error::StoreError;

/// How many refusals are kept of a workspace.
const KEPT: i64 = 50;

/// One refusal.
#[derive(Debug, Clone)]
pub struct DenialRow {
    /// Which: `workspace`, `quota:max_concurrent`, …
    pub name: String,
    /// Who was refused.
    pub actor: String,
    /// When.
    pub at: DateTime<Utc>,
}

impl Store {
    /// Keeps a refusal, and forgets the oldest beyond a fixed number.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn keep_denial(
        &self,
        workspace: WorkspaceId,
        name: &str,
        actor: &str,
    ) -> Result<(), StoreError> {
        let mut changes = self.begin().await?;
        let failed = || statement("keeping a refusal");
        sqlx::query(
            "INSERT INTO denials (id, workspace_id, name, actor, at) VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(DenialId::new().to_string())
        .bind(workspace.to_string())
        .bind(name)
        .bind(actor)
        .bind(now_ms())
        .execute(&mut *changes.inner)
        .await
        .map_err(failed())?;
        sqlx::query(
            "DELETE FROM denials WHERE workspace_id = $1 AND id NOT IN \
             (SELECT id FROM denials WHERE workspace_id = $1 ORDER BY id DESC LIMIT $2)",
        )
        .bind(workspace.to_string())
        .bind(KEPT)
        .execute(&mut *changes.inner)
        .await
        .map_err(failed())?;
        changes.commit().await
    }

    /// The last refusals of a workspace, the newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn denials(
        &self,
        workspace: WorkspaceId,
        limit: u32,
    ) -> Result<Vec<DenialRow>, StoreError> {
        let rows = sqlx::query(
            "SELECT name, actor, at FROM denials WHERE workspace_id = $1 \
             ORDER BY id DESC LIMIT $2",
        )
        .bind(workspace.to_string())
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing refusals"))?;
        rows.iter()
            .map(|row| {
                Ok(DenialRow {
                    name: row.text("name")?,
                    actor: row.text("actor")?,
                    at: row.time("at")?,
                })
            })
            .collect()
    }
}
