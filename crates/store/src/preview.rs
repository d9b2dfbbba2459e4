//! Previews: what a file looks like, made once for each workspace and content, and the parts that
//! it consists of.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{PreviewId, WorkspaceId};
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json};
use crate::error::StoreError;
use crate::preview_source::{PreviewSource, SourceFile, TABLES};
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

/// The preview of certain bytes in a workspace, as one format and by one maker.
fn of_bytes() -> String {
    format!(
        "SELECT {COLUMNS} FROM previews WHERE workspace_id = $1 AND sha256 = $2 \
         AND format = $3 AND renderer = $4"
    )
}

impl Store {
    /// The preview that [`Transaction::place_preview`] would find, if there is one.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn placed_preview(
        &self,
        wanted: &NewPreview<'_>,
    ) -> Result<Option<Preview>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(of_bytes()))
            .bind(wanted.workspace_id.to_string())
            .bind(&wanted.file.sha256)
            .bind(wanted.format)
            .bind(wanted.renderer)
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("looking for a preview"))?;
        row.as_ref().map(read).transpose()
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

    /// Previews that nobody can see any more, as no file has their bytes, or that something older
    /// than `renderer` made: behind the first `skipped`, at most `limit`. For the system itself.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn forgotten_previews(
        &self,
        renderer: i64,
        skipped: u32,
        limit: u32,
    ) -> Result<Vec<PreviewId>, StoreError> {
        let has = |table: &str| {
            format!(
                "EXISTS (SELECT 1 FROM {table} WHERE {table}.workspace_id = previews.workspace_id \
                 AND {table}.sha256 = previews.sha256)"
            )
        };
        let [artifacts, attachments, knowledge] = TABLES.map(|(table, _)| has(table));
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT id FROM previews WHERE renderer < $1 \
             OR NOT ({artifacts} OR {attachments} OR {knowledge}) ORDER BY id LIMIT $2 OFFSET $3"
        )))
        .bind(renderer)
        .bind(i64::from(limit))
        .bind(i64::from(skipped))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("looking for previews of nothing"))?;
        rows.iter().map(|row| row.word("id")).collect()
    }

    /// The names of a preview's parts.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn preview_parts(&self, id: PreviewId) -> Result<Vec<String>, StoreError> {
        let rows = sqlx::query("SELECT name FROM preview_parts WHERE preview_id = $1")
            .bind(id.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(statement("listing the parts of a preview"))?;
        rows.iter().map(|row| row.text("name")).collect()
    }

    /// A part of a preview is no more. Its bytes have to be gone before.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_preview_part(&self, id: PreviewId, name: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM preview_parts WHERE preview_id = $1 AND name = $2")
            .bind(id.to_string())
            .bind(name)
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("forgetting a part of a preview"))
    }

    /// A preview is no more. Its parts have to be gone before.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_preview(&self, id: PreviewId) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM previews WHERE id = $1")
            .bind(id.to_string())
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("forgetting a preview"))
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
        let row = sqlx::query(sqlx::AssertSqlSafe(of_bytes()))
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
