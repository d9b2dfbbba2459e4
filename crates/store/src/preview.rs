//! Previews: what a file looks like, made once for each workspace and content, and the parts that
//! it consists of.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ArtifactId, AttachmentId, KnowledgeFileId, PreviewId, WorkspaceId};
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::api_key::KeyScope;
use crate::artifact;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json};
use crate::error::StoreError;
use crate::objects::ObjectKey;
use crate::thread::readable_threads;
use crate::words::words;

words! {
    /// How far a preview is.
    PreviewState {
        /// It was asked for.
        Waiting = "waiting",
        /// Somebody makes it; some of its parts may be there.
        Making = "making",
        /// It can be seen.
        Ready = "ready",
        /// There is none, for a reason.
        Failed = "failed",
    }
}

/// A file that can be previewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewSource {
    /// A version of a file that left a sandbox.
    Artifact(ArtifactId),
    /// A file that was attached to a message.
    Attachment(AttachmentId),
    /// A file of a knowledge base.
    KnowledgeFile(KnowledgeFileId),
}

impl PreviewSource {
    const fn kind(self) -> &'static str {
        match self {
            Self::Artifact(_) => "artifact",
            Self::Attachment(_) => "attachment",
            Self::KnowledgeFile(_) => "knowledge_file",
        }
    }

    fn id(self) -> String {
        match self {
            Self::Artifact(id) => id.to_string(),
            Self::Attachment(id) => id.to_string(),
            Self::KnowledgeFile(id) => id.to_string(),
        }
    }

    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        match row.text("source_kind")?.as_str() {
            "artifact" => Ok(Self::Artifact(row.word("source_id")?)),
            "attachment" => Ok(Self::Attachment(row.word("source_id")?)),
            "knowledge_file" => Ok(Self::KnowledgeFile(row.word("source_id")?)),
            other => Err(StoreError::Row {
                column: "source_kind",
                found: other.into(),
            }),
        }
    }
}

impl From<PreviewSource> for ObjectKey {
    fn from(source: PreviewSource) -> Self {
        match source {
            PreviewSource::Artifact(id) => id.into(),
            PreviewSource::Attachment(id) => id.into(),
            PreviewSource::KnowledgeFile(id) => id.into(),
        }
    }
}

/// What is known of a file that can be previewed.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Whose bytes lie under the file's own id: another one where a version was restored.
    pub source: PreviewSource,
    /// Its name, percent-encoded where it is one of a sandbox.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, as it was found when it came.
    pub media_type: String,
}

/// What a file looks like.
#[derive(Debug, Clone)]
pub struct Preview {
    /// Its id.
    pub id: PreviewId,
    /// The workspace that it was made for.
    pub workspace_id: WorkspaceId,
    /// Of which bytes.
    pub sha256: String,
    /// As what they were read.
    pub format: String,
    /// Where they lie.
    pub source: PreviewSource,
    /// How many they are.
    pub bytes: u64,
    /// How far it is.
    pub state: PreviewState,
    /// What is there to see, or why there is nothing.
    pub contents: Value,
    /// When it was first asked for.
    pub created_at: DateTime<Utc>,
    /// When it was made, or given up.
    pub made_at: Option<DateTime<Utc>>,
}

/// What a new preview is made of.
#[derive(Debug, Clone)]
pub struct NewPreview<'a> {
    /// The workspace that it is made for.
    pub workspace_id: WorkspaceId,
    /// Of which file.
    pub file: &'a SourceFile,
    /// As what it is read.
    pub format: &'static str,
    /// The number of what makes it.
    pub renderer: i64,
}

/// A part of a preview; its bytes lie in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviewPart {
    /// A word of ours and a number.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its media type: one of a few that are safe to show.
    pub media_type: String,
}

const COLUMNS: &str = "id, workspace_id, sha256, format, source_kind, source_id, bytes, state, \
     contents, created_at, made_at";

fn read(row: &AnyRow) -> Result<Preview, StoreError> {
    Ok(Preview {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        sha256: row.text("sha256")?,
        format: row.text("format")?,
        source: PreviewSource::read(row)?,
        bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
        state: row.word("state")?,
        contents: row.document("contents")?,
        created_at: row.time("created_at")?,
        made_at: row.maybe_time("made_at")?,
    })
}

/// The statement that looks for a file of one kind that whoever asks may read: `$1` is the value of
/// `column`, `$2` the workspace, `$3` the person, `$4` the key, `$5` whether it manages, `$6` whether
/// the key's scopes reach.
///
/// Artifacts and attachments are read as everywhere; knowledge by every member.
fn select(table: &str, column: &str) -> String {
    let readable = match table {
        "artifacts" => artifact::readable("$3", "$4", "$5"),
        "attachments" => {
            let threads = readable_threads("$3", "$4", "$5");
            format!(
                "((attachments.thread_id IS NOT NULL AND {threads}) \
                 OR (attachments.thread_id IS NULL AND (attachments.user_id = $3 \
                 OR (attachments.user_id IS NULL AND attachments.api_key_id = $4 AND $5 = $5))))"
            )
        }
        _ => "$3 = $3 AND $4 = $4 AND $5 = $5".into(),
    };
    let from = match table {
        "artifacts" => {
            "artifacts JOIN leases ON leases.id = artifacts.lease_id \
             LEFT JOIN threads ON threads.id = artifacts.thread_id"
        }
        "attachments" => "attachments LEFT JOIN threads ON threads.id = attachments.thread_id",
        _ => table,
    };
    let id = match table {
        // The older version whose bytes it has.
        "artifacts" => "COALESCE(artifacts.bytes_of, artifacts.id)".to_owned(),
        _ => format!("{table}.id"),
    };
    format!(
        "SELECT {id} AS id, {table}.name, {table}.bytes, {table}.sha256, {table}.media_type \
         FROM {from} WHERE {table}.{column} = $1 AND {table}.workspace_id = $2 AND $6 = 1 \
         AND {readable} LIMIT 1"
    )
}

const TABLES: [(&str, KeyScope); 3] = [
    ("artifacts", KeyScope::ArtifactsRead),
    ("attachments", KeyScope::ThreadsRead),
    ("knowledge_files", KeyScope::KnowledgeRead),
];

impl Store {
    /// What is known of a file, if whoever asks may read it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn previewable(
        &self,
        access: &Access,
        source: PreviewSource,
    ) -> Result<Option<SourceFile>, StoreError> {
        let at = match source {
            PreviewSource::Artifact(_) => 0,
            PreviewSource::Attachment(_) => 1,
            PreviewSource::KnowledgeFile(_) => 2,
        };
        let row = self.readable(access, at, "id", &source.id()).await?;
        row.map(|row| {
            let id = row.text("id")?;
            let unknown = || StoreError::Row {
                column: "id",
                found: id.clone(),
            };
            Ok(SourceFile {
                source: match source {
                    // The older version whose bytes it has.
                    PreviewSource::Artifact(_) => {
                        PreviewSource::Artifact(id.parse().map_err(|_| unknown())?)
                    }
                    other => other,
                },
                name: row.text("name")?,
                bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
                sha256: row.text("sha256")?,
                media_type: row.text("media_type")?,
            })
        })
        .transpose()
    }

    async fn readable(
        &self,
        access: &Access,
        at: usize,
        column: &str,
        value: &str,
    ) -> Result<Option<AnyRow>, StoreError> {
        let (table, scope) = TABLES[at];
        sqlx::query(sqlx::AssertSqlSafe(select(table, column)))
            .bind(value)
            .bind(access.workspace().to_string())
            .bind(access.user_text())
            .bind(access.api_key_text())
            .bind(access.manages())
            .bind(i64::from(access.has_scope(scope)))
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("looking for a file to preview"))
    }

    /// The workspace that a file belongs to: who may see it is asked next.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace_of_source(
        &self,
        source: PreviewSource,
    ) -> Result<Option<WorkspaceId>, StoreError> {
        let select = match source {
            PreviewSource::Artifact(_) => "SELECT workspace_id FROM artifacts WHERE id = $1",
            PreviewSource::Attachment(_) => "SELECT workspace_id FROM attachments WHERE id = $1",
            PreviewSource::KnowledgeFile(_) => {
                "SELECT workspace_id FROM knowledge_files WHERE id = $1"
            }
        };
        let row = sqlx::query(select)
            .bind(source.id())
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("looking for a file"))?;
        row.map(|row| row.word("workspace_id")).transpose()
    }

    /// The preview with this id, for the system itself.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn preview(&self, id: PreviewId) -> Result<Option<Preview>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM previews WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a preview"))?;
        row.as_ref().map(read).transpose()
    }

    /// The preview with this id, if whoever asks may read a file of its workspace with its bytes.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn preview_of(
        &self,
        access: &Access,
        id: PreviewId,
    ) -> Result<Option<Preview>, StoreError> {
        let Some(preview) = self.preview(id).await? else {
            return Ok(None);
        };
        if preview.workspace_id != access.workspace() {
            return Ok(None);
        }
        for at in 0..TABLES.len() {
            let found = self.readable(access, at, "sha256", &preview.sha256).await?;
            if found.is_some() {
                return Ok(Some(preview));
            }
        }
        Ok(None)
    }

    /// A part of a preview.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn preview_part(
        &self,
        id: PreviewId,
        name: &str,
    ) -> Result<Option<PreviewPart>, StoreError> {
        let row = sqlx::query(
            "SELECT name, bytes, media_type FROM preview_parts WHERE preview_id = $1 AND name = $2",
        )
        .bind(id.to_string())
        .bind(name)
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a part of a preview"))?;
        row.map(|row| {
            Ok(PreviewPart {
                name: row.text("name")?,
                bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
                media_type: row.text("media_type")?,
            })
        })
        .transpose()
    }

    /// Keeps a part of a preview, over one of the same name.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn keep_preview_part(
        &self,
        id: PreviewId,
        part: &PreviewPart,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO preview_parts (preview_id, name, bytes, media_type) \
             VALUES ($1, $2, $3, $4) ON CONFLICT (preview_id, name) \
             DO UPDATE SET bytes = excluded.bytes, media_type = excluded.media_type",
        )
        .bind(id.to_string())
        .bind(&part.name)
        .bind(i64::try_from(part.bytes).unwrap_or(i64::MAX))
        .bind(&part.media_type)
        .execute(&self.pool)
        .await
        .map(|_| ())
        .map_err(statement("keeping a part of a preview"))
    }

    /// Notes how far a preview is, and what there is to see.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn note_preview(
        &self,
        id: PreviewId,
        state: PreviewState,
        contents: &Value,
    ) -> Result<(), StoreError> {
        let is_over = matches!(state, PreviewState::Ready | PreviewState::Failed);
        sqlx::query("UPDATE previews SET state = $2, contents = $3, made_at = $4 WHERE id = $1")
            .bind(id.to_string())
            .bind(state.as_str())
            .bind(to_json("contents", contents)?)
            .bind(is_over.then(now_ms))
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("noting the state of a preview"))
    }
}

impl Transaction {
    /// The preview of a file as one format, made if there is none. One that waits is made of the
    /// file that was asked for last: an older one may be gone by then.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn place_preview(&mut self, new: &NewPreview<'_>) -> Result<Preview, StoreError> {
        sqlx::query(
            "INSERT INTO previews (id, workspace_id, sha256, format, renderer, source_kind, \
             source_id, bytes, state, contents, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', '{}', $9) \
             ON CONFLICT (workspace_id, sha256, format, renderer) DO UPDATE SET \
             source_kind = excluded.source_kind, source_id = excluded.source_id",
        )
        .bind(PreviewId::new().to_string())
        .bind(new.workspace_id.to_string())
        .bind(&new.file.sha256)
        .bind(new.format)
        .bind(new.renderer)
        .bind(new.file.source.kind())
        .bind(new.file.source.id())
        .bind(i64::try_from(new.file.bytes).unwrap_or(i64::MAX))
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("asking for a preview"))?;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM previews WHERE workspace_id = $1 AND sha256 = $2 \
             AND format = $3 AND renderer = $4"
        )))
        .bind(new.workspace_id.to_string())
        .bind(&new.file.sha256)
        .bind(new.format)
        .bind(new.renderer)
        .fetch_one(&mut *self.inner)
        .await
        .map_err(statement("reading a preview"))?;
        read(&row)
    }

    /// A preview is to be made once more.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn restart_preview(&mut self, id: PreviewId) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE previews SET state = 'waiting', contents = '{}', made_at = NULL WHERE id = $1",
        )
        .bind(id.to_string())
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("asking for a preview once more"))
    }
}
