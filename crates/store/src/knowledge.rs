//! The knowledge base of a workspace: files that every member reads and code opens by name.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{KnowledgeFileId, UserId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, unique};
use crate::error::StoreError;
use crate::new_upload::NewUpload;
use crate::uploaded_name::UploadedName;

/// A file of a knowledge base.
#[derive(Debug, Clone)]
pub struct KnowledgeFile {
    /// Its id; its bytes lie under it, never under its name.
    pub id: KnowledgeFileId,
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// Who added it; `None` for a service.
    pub user_id: Option<UserId>,
    /// What people call whoever added it; empty for a service.
    pub added_by: String,
    /// Its name: there is one of it in a workspace.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, by content.
    pub media_type: String,
    /// When it was added.
    pub created_at: DateTime<Utc>,
}

/// What a new knowledge file is made of.
pub type NewKnowledgeFile = NewUpload<KnowledgeFileId>;

const COLUMNS: &str = "knowledge_files.id, knowledge_files.workspace_id, \
     knowledge_files.user_id, COALESCE(users.name, '') AS added_by, knowledge_files.name, \
     knowledge_files.bytes, knowledge_files.sha256, knowledge_files.media_type, \
     knowledge_files.created_at";

const FROM: &str = "knowledge_files LEFT JOIN users ON users.id = knowledge_files.user_id";

fn read(row: &AnyRow) -> Result<KnowledgeFile, StoreError> {
    Ok(KnowledgeFile {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        user_id: row.maybe_word("user_id")?,
        added_by: row.text("added_by")?,
        name: row.text("name")?,
        bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
        sha256: row.text("sha256")?,
        media_type: row.text("media_type")?,
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// The knowledge base of a workspace, the newest first: files older than `before`, at most
    /// `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn knowledge_of(
        &self,
        access: &Access,
        before: Option<KnowledgeFileId>,
        limit: u32,
    ) -> Result<Vec<KnowledgeFile>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE knowledge_files.workspace_id = $1 \
             AND knowledge_files.id < $2 ORDER BY knowledge_files.id DESC LIMIT $3"
        )))
        .bind(access.workspace().to_string())
        .bind(before.map_or_else(|| "g".into(), |id| id.to_string()))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing a knowledge base"))?;
        rows.iter().map(read).collect()
    }

    /// The knowledge file with this id, within the workspace of whoever asks.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn knowledge_file_of(
        &self,
        access: &Access,
        id: KnowledgeFileId,
    ) -> Result<Option<KnowledgeFile>, StoreError> {
        self.knowledge_where("id", &id.to_string(), access.workspace())
            .await
    }

    /// The knowledge file of this name, within the workspace of whoever asks.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn knowledge_file_named(
        &self,
        access: &Access,
        name: &str,
    ) -> Result<Option<KnowledgeFile>, StoreError> {
        self.knowledge_where("name", UploadedName::of(name).as_str(), access.workspace())
            .await
    }

    async fn knowledge_where(
        &self,
        column: &'static str,
        value: &str,
        workspace: WorkspaceId,
    ) -> Result<Option<KnowledgeFile>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE knowledge_files.{column} = $1 \
             AND knowledge_files.workspace_id = $2"
        )))
        .bind(value.to_owned())
        .bind(workspace.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a knowledge file"))?;
        row.as_ref().map(read).transpose()
    }

    /// The workspace that a knowledge file belongs to: who may read it is asked next.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace_of_knowledge_file(
        &self,
        id: KnowledgeFileId,
    ) -> Result<Option<WorkspaceId>, StoreError> {
        let row = sqlx::query("SELECT workspace_id FROM knowledge_files WHERE id = $1")
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("looking for a knowledge file"))?;
        row.map(|row| row.word("workspace_id")).transpose()
    }
}

impl Transaction {
    /// Adds a file to a knowledge base.
    ///
    /// # Errors
    /// When there is one of that name.
    pub async fn create_knowledge_file(
        &mut self,
        access: &Access,
        new: &NewKnowledgeFile,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO knowledge_files (id, workspace_id, user_id, name, bytes, sha256, \
             media_type, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(new.id.to_string())
        .bind(access.workspace().to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(new.name.as_str().to_owned())
        .bind(i64::try_from(new.bytes).unwrap_or(i64::MAX))
        .bind(&new.sha256)
        .bind(&new.media_type)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(unique("adding a knowledge file", "the name"))
    }

    /// Takes a file out of a knowledge base. Says whether it was there.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn delete_knowledge_file(
        &mut self,
        access: &Access,
        id: KnowledgeFileId,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM knowledge_files WHERE id = $1 AND workspace_id = $2")
            .bind(id.to_string())
            .bind(access.workspace().to_string())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("deleting a knowledge file"))?;
        Ok(done.rows_affected() > 0)
    }
}
