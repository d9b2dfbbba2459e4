//! Files that can be previewed, and who may read them.

use glovebox_protocol::ids::{ArtifactId, AttachmentId, KnowledgeFileId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::api_key::KeyScope;
use crate::artifact;
use crate::database::{Columns as _, Store, statement};
use crate::error::StoreError;
use crate::objects::ObjectKey;
use crate::thread::readable_threads;

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
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Artifact(_) => "artifact",
            Self::Attachment(_) => "attachment",
            Self::KnowledgeFile(_) => "knowledge_file",
        }
    }

    pub(crate) fn id(self) -> String {
        match self {
            Self::Artifact(id) => id.to_string(),
            Self::Attachment(id) => id.to_string(),
            Self::KnowledgeFile(id) => id.to_string(),
        }
    }

    pub(crate) fn read(row: &AnyRow) -> Result<Self, StoreError> {
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

pub(crate) const TABLES: [(&str, KeyScope); 3] = [
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

    pub(crate) async fn readable(
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
}
