//! Which file of the object store: what belongs to it, and under which id.

use std::fmt;

use glovebox_protocol::ids::{ArtifactId, AttachmentId, KnowledgeFileId};
use serde::{Deserialize, Serialize};
use sqlx::any::AnyRow;

use crate::database::Columns as _;
use crate::error::StoreError;
use crate::objects::ObjectKey;

/// What a file belongs to.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FileKind {
    /// It left a sandbox.
    Artifact,
    /// It was attached to a message, or is about to be.
    Attachment,
    /// It is of a knowledge base.
    KnowledgeFile,
}

/// A file that a backup holds, or that it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Form", into = "Form")]
pub enum BackedUpFile {
    /// It left a sandbox.
    Artifact(ArtifactId),
    /// It was attached to a message, or is about to be.
    Attachment(AttachmentId),
    /// It is of a knowledge base.
    KnowledgeFile(KnowledgeFileId),
}

/// Everything that has a file: a version that was restored has the bytes of an older one.
pub(super) const ALL: &str = "SELECT 'artifact' AS kind, id, bytes, sha256 FROM artifacts \
     WHERE bytes_of IS NULL \
     UNION ALL SELECT 'attachment' AS kind, id, bytes, sha256 FROM attachments \
     UNION ALL SELECT 'knowledge_file' AS kind, id, bytes, sha256 FROM knowledge_files \
     ORDER BY kind, id";

/// As it stands in a backup. Those of before there were others say no kind.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    pub(super) id: String,
    #[serde(default = "artifact", skip_serializing_if = "is_artifact")]
    pub(super) kind: FileKind,
}

pub(super) const fn artifact() -> FileKind {
    FileKind::Artifact
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde asks for"
)]
pub(super) const fn is_artifact(kind: &FileKind) -> bool {
    matches!(kind, FileKind::Artifact)
}

impl TryFrom<Form> for BackedUpFile {
    type Error = glovebox_protocol::ids::InvalidId;

    fn try_from(form: Form) -> Result<Self, Self::Error> {
        Ok(match form.kind {
            FileKind::Artifact => Self::Artifact(form.id.parse()?),
            FileKind::Attachment => Self::Attachment(form.id.parse()?),
            FileKind::KnowledgeFile => Self::KnowledgeFile(form.id.parse()?),
        })
    }
}

impl From<BackedUpFile> for Form {
    fn from(file: BackedUpFile) -> Self {
        let (kind, id) = match file {
            BackedUpFile::Artifact(id) => (FileKind::Artifact, id.to_string()),
            BackedUpFile::Attachment(id) => (FileKind::Attachment, id.to_string()),
            BackedUpFile::KnowledgeFile(id) => (FileKind::KnowledgeFile, id.to_string()),
        };
        Self { id, kind }
    }
}

impl From<BackedUpFile> for ObjectKey {
    fn from(file: BackedUpFile) -> Self {
        match file {
            BackedUpFile::Artifact(id) => Self::Artifact(id),
            BackedUpFile::Attachment(id) => Self::Attachment(id),
            BackedUpFile::KnowledgeFile(id) => Self::KnowledgeFile(id),
        }
    }
}

impl fmt::Display for BackedUpFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Artifact(id) => id.fmt(f),
            Self::Attachment(id) => write!(f, "attachment {id}"),
            Self::KnowledgeFile(id) => write!(f, "knowledge file {id}"),
        }
    }
}

impl BackedUpFile {
    /// The file of a row that [`ALL`] gives.
    pub(super) fn of(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(match row.text("kind")?.as_str() {
            "artifact" => Self::Artifact(row.word("id")?),
            "attachment" => Self::Attachment(row.word("id")?),
            _ => Self::KnowledgeFile(row.word("id")?),
        })
    }
}
