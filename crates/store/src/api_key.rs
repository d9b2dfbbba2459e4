//! Keys with which programs call the server.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ApiKeyId, UserId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json};
use crate::error::StoreError;
use crate::token::TokenHash;
use crate::words::words;

words! {
    /// What a key may be used for.
    KeyScope {
        /// Start sandboxes and run code.
        CodeExecutionRun = "code_execution:run",
        /// Read files of sandboxes.
        FilesRead = "files:read",
        /// Push files into sandboxes and delete them there.
        FilesWrite = "files:write",
        /// Read what left sandboxes.
        ArtifactsRead = "artifacts:read",
        /// Read threads.
        ThreadsRead = "threads:read",
        /// Write into threads.
        ThreadsWrite = "threads:write",
        /// Read the knowledge base.
        KnowledgeRead = "knowledge:read",
        /// Change the knowledge base.
        KnowledgeWrite = "knowledge:write",
    }
}

/// A key, without its token.
#[derive(Debug, Clone)]
pub struct ApiKey {
    /// Its id, which is no secret.
    pub id: ApiKeyId,
    /// The workspace that it is for.
    pub workspace_id: WorkspaceId,
    /// The person it acts as; `None` for a service's.
    pub user_id: Option<UserId>,
    /// What people call it.
    pub name: String,
    /// What it may be used for.
    pub scopes: Vec<KeyScope>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to a minute.
    pub used_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// What a new key is made of.
#[derive(Debug, Clone)]
pub struct NewApiKey {
    /// The workspace that it is for.
    pub workspace_id: WorkspaceId,
    /// The person it acts as; `None` for a service's.
    pub user_id: Option<UserId>,
    /// What people call it.
    pub name: String,
    /// Its token, hashed.
    pub token: TokenHash,
    /// What it may be used for.
    pub scopes: Vec<KeyScope>,
}

fn read(row: &AnyRow) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        user_id: row.maybe_word("user_id")?,
        name: row.text("name")?,
        scopes: row.document("scopes")?,
        created_at: row.time("created_at")?,
        used_at: row.maybe_time("used_at")?,
        revoked_at: row.maybe_time("revoked_at")?,
    })
}

impl Store {
    /// The keys of a workspace that are not revoked, by age. Who may see which is for the caller.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn api_keys(&self, workspace: WorkspaceId) -> Result<Vec<ApiKey>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, workspace_id, user_id, name, scopes, created_at, used_at, revoked_at \
             FROM api_keys WHERE workspace_id = $1 AND revoked_at IS NULL ORDER BY id",
        )
        .bind(workspace.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing API keys"))?;
        rows.iter().map(read).collect()
    }
}

impl Transaction {
    /// Makes a key.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn create_api_key(&mut self, new: &NewApiKey) -> Result<ApiKeyId, StoreError> {
        let id = ApiKeyId::new();
        sqlx::query(
            "INSERT INTO api_keys (id, workspace_id, user_id, name, token_hash, scopes, \
             created_at) VALUES ($1, $2, $3, $4, $5, $6, $7)",
        )
        .bind(id.to_string())
        .bind(new.workspace_id.to_string())
        .bind(new.user_id.map(|id| id.to_string()))
        .bind(&new.name)
        .bind(new.token.as_str())
        .bind(to_json("scopes", &new.scopes)?)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("making an API key"))?;
        Ok(id)
    }

    /// Revokes a key of a workspace. Says whether there was one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn revoke_api_key(
        &mut self,
        workspace: WorkspaceId,
        id: ApiKeyId,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE api_keys SET revoked_at = $3 \
             WHERE id = $1 AND workspace_id = $2 AND revoked_at IS NULL",
        )
        .bind(id.to_string())
        .bind(workspace.to_string())
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("revoking an API key"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Revokes all keys that act as a user in a workspace, and gives their ids and names.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn revoke_api_keys_of(
        &mut self,
        workspace: WorkspaceId,
        user: UserId,
    ) -> Result<Vec<(ApiKeyId, String)>, StoreError> {
        let rows = sqlx::query(
            "UPDATE api_keys SET revoked_at = $3 \
             WHERE workspace_id = $1 AND user_id = $2 AND revoked_at IS NULL RETURNING id, name",
        )
        .bind(workspace.to_string())
        .bind(user.to_string())
        .bind(now_ms())
        .fetch_all(&mut *self.inner)
        .await
        .map_err(statement("revoking API keys"))?;
        rows.iter()
            .map(|row| Ok((row.word("id")?, row.text("name")?)))
            .collect()
    }
}
