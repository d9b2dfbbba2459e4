//! Files that people attach to messages: uploaded first, sent with a message, theirs from then on.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ApiKeyId, AttachmentId, MessageId, ThreadId, UserId, WorkspaceId};
use glovebox_protocol::thread::SentFile;
use sqlx::AnyConnection;
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_ms};
use crate::error::StoreError;
use crate::new_upload::NewUpload;
use crate::uploaded_name::UploadedName;

/// A file that somebody brought.
#[derive(Debug, Clone)]
pub struct Attachment {
    /// Its id; its bytes lie under it, never under its name.
    pub id: AttachmentId,
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// Who uploaded it; `None` for a service.
    pub user_id: Option<UserId>,
    /// The key that it was uploaded with.
    pub api_key_id: Option<ApiKeyId>,
    /// The thread that it was sent into.
    pub thread_id: Option<ThreadId>,
    /// The message that it was sent with.
    pub message_id: Option<MessageId>,
    /// Its name; from when it was sent on, its name in the thread and in the sandbox.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// The SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
    /// Its media type, by content.
    pub media_type: String,
    /// When it was uploaded.
    pub created_at: DateTime<Utc>,
}

/// What a new attachment is made of.
pub type NewAttachment = NewUpload<AttachmentId>;

const UNSENT: &str = "SELECT COUNT(*) AS files, CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS bytes \
     FROM attachments WHERE workspace_id = $1 AND thread_id IS NULL \
     AND (user_id = $2 OR (user_id IS NULL AND api_key_id = $3))";

const COLUMNS: &str = "id, workspace_id, user_id, api_key_id, thread_id, message_id, name, bytes, \
     sha256, media_type, created_at";

fn read(row: &AnyRow) -> Result<Attachment, StoreError> {
    Ok(Attachment {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        user_id: row.maybe_word("user_id")?,
        api_key_id: row.maybe_word("api_key_id")?,
        thread_id: row.maybe_word("thread_id")?,
        message_id: row.maybe_word("message_id")?,
        name: row.text("name")?,
        bytes: u64::try_from(row.number("bytes")?).unwrap_or(0),
        sha256: row.text("sha256")?,
        media_type: row.text("media_type")?,
        created_at: row.time("created_at")?,
    })
}

fn files_and_bytes(row: &AnyRow) -> Result<(u64, u64), StoreError> {
    let count = |column| Ok(u64::try_from(row.number(column)?).unwrap_or(0));
    Ok((count("files")?, count("bytes")?))
}

impl Store {
    /// The attachment with this id, for the system itself.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn attachment(&self, id: AttachmentId) -> Result<Option<Attachment>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM attachments WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading an attachment"))?;
        row.as_ref().map(read).transpose()
    }

    /// The attachment with this id: one that was sent, for whoever may read its thread; one that
    /// was not, for whoever uploaded it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn attachment_of(
        &self,
        access: &Access,
        id: AttachmentId,
    ) -> Result<Option<Attachment>, StoreError> {
        let Some(found) = self.attachment(id).await? else {
            return Ok(None);
        };
        let may_read = match found.thread_id {
            Some(thread) => self.thread_of(access, thread).await?.is_some(),
            None => {
                found.workspace_id == access.workspace()
                    && access.is_own(found.user_id, found.api_key_id)
            }
        };
        Ok(may_read.then_some(found))
    }

    /// The workspace that an attachment belongs to: who may read it is asked next.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace_of_attachment(
        &self,
        id: AttachmentId,
    ) -> Result<Option<WorkspaceId>, StoreError> {
        Ok(self.attachment(id).await?.map(|found| found.workspace_id))
    }

    /// What was sent into a thread, the newest message's first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn attachments_of_thread(
        &self,
        thread: ThreadId,
    ) -> Result<Vec<Attachment>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM attachments WHERE thread_id = $1 \
             ORDER BY (SELECT messages.seq FROM messages \
             WHERE messages.id = attachments.message_id) DESC, id DESC"
        )))
        .bind(thread.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing the attachments of a thread"))?;
        rows.iter().map(read).collect()
    }

    /// How many files somebody has uploaded and not sent, and how many bytes they have.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unsent(&self, access: &Access) -> Result<(u64, u64), StoreError> {
        let counted = sqlx::query(UNSENT)
            .bind(access.workspace().to_string())
            .bind(access.user_text())
            .bind(access.api_key_text())
            .fetch_one(&self.pool)
            .await
            .map_err(statement("counting what was not sent"))?;
        files_and_bytes(&counted)
    }

    /// What was uploaded before some time and never sent: behind the first `skipped`, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn unsent_before(
        &self,
        time: DateTime<Utc>,
        skipped: u32,
        limit: u32,
    ) -> Result<Vec<Attachment>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM attachments WHERE thread_id IS NULL AND created_at < $1 \
             ORDER BY created_at, id LIMIT $2 OFFSET $3"
        )))
        .bind(to_ms(time))
        .bind(i64::from(limit))
        .bind(i64::from(skipped))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("looking for what was never sent"))?;
        rows.iter().map(read).collect()
    }

    /// The names that are taken in a thread: of what was sent, of what code has saved, and of what lies
    /// in its sandbox besides.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn names_of_thread(&self, thread: ThreadId) -> Result<BTreeSet<Vec<u8>>, StoreError> {
        let connection = self.pool.acquire().await;
        let mut connection = connection.map_err(statement("listing the names of a thread"))?;
        names_of_thread(&mut connection, thread).await
    }
}

impl Transaction {
    /// How many files somebody has uploaded and not sent, and how many bytes they have, as these
    /// changes see it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn unsent(&mut self, access: &Access) -> Result<(u64, u64), StoreError> {
        let counted = sqlx::query(UNSENT)
            .bind(access.workspace().to_string())
            .bind(access.user_text())
            .bind(access.api_key_text())
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting what was not sent"))?;
        files_and_bytes(&counted)
    }

    /// Keeps what was uploaded. It is not sent yet. The workspace has to be held, where its quota counts.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn create_attachment(
        &mut self,
        access: &Access,
        new: &NewAttachment,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO attachments (id, workspace_id, user_id, api_key_id, name, bytes, sha256, \
             media_type, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(new.id.to_string())
        .bind(access.workspace().to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(access.api_key().map(|id| id.to_string()))
        .bind(new.name.as_str().to_owned())
        .bind(i64::try_from(new.bytes).unwrap_or(i64::MAX))
        .bind(&new.sha256)
        .bind(&new.media_type)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("keeping an attachment"))
    }

    /// Takes away the row of an attachment that was not sent. Says whether there was one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn delete_unsent(&mut self, id: AttachmentId) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM attachments WHERE id = $1 AND thread_id IS NULL")
            .bind(id.to_string())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("deleting an attachment"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Sends what was uploaded with a message of a thread that is held, each under a name that is
    /// free in the thread. Gives the first that is not there to be sent.
    pub(crate) async fn send_attachments(
        &mut self,
        access: &Access,
        thread: ThreadId,
        message: MessageId,
        ids: &[AttachmentId],
    ) -> Result<Result<Vec<SentFile>, AttachmentId>, StoreError> {
        let mut sent = Vec::with_capacity(ids.len());
        if ids.is_empty() {
            return Ok(Ok(sent));
        }
        let mut taken = names_of_thread(&mut self.inner, thread).await?;
        for id in ids {
            let row = sqlx::query(sqlx::AssertSqlSafe(format!(
                "SELECT {COLUMNS} FROM attachments WHERE id = $1 AND thread_id IS NULL"
            )))
            .bind(id.to_string())
            .fetch_optional(&mut *self.inner)
            .await
            .map_err(statement("reading an attachment"))?;
            let found = row.as_ref().map(read).transpose()?.filter(|found| {
                found.workspace_id == access.workspace()
                    && access.is_own(found.user_id, found.api_key_id)
            });
            let Some(found) = found else {
                return Ok(Err(*id));
            };
            let name = UploadedName::of(&found.name).free_among(&taken);
            let done = sqlx::query(
                "UPDATE attachments SET thread_id = $2, message_id = $3, name = $4 \
                 WHERE id = $1 AND thread_id IS NULL",
            )
            .bind(id.to_string())
            .bind(thread.to_string())
            .bind(message.to_string())
            .bind(name.as_str().to_owned())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("sending an attachment"))?;
            if done.rows_affected() == 0 {
                return Ok(Err(*id));
            }
            taken.insert(name.as_str().into());
            sent.push(SentFile {
                attachment: *id,
                uploaded_as: (found.name != name.as_str()).then_some(found.name),
                name: name.as_str().to_owned(),
                bytes: found.bytes,
                media_type: found.media_type,
            });
        }
        Ok(Ok(sent))
    }
}

async fn names_of_thread(
    connection: &mut AnyConnection,
    thread: ThreadId,
) -> Result<BTreeSet<Vec<u8>>, StoreError> {
    const SENT: &str = "SELECT name FROM attachments WHERE thread_id = $1";
    const SAVED: &str = "SELECT DISTINCT name FROM artifacts WHERE thread_id = $1";
    const STAGED: &str = "SELECT DISTINCT staged_files.name FROM staged_files \
         JOIN leases ON leases.id = staged_files.lease_id \
         WHERE leases.thread_id = $1 AND leases.state <> 'ended'";
    let mut names = BTreeSet::new();
    for select in [SENT, STAGED, SAVED] {
        let rows = sqlx::query(select)
            .bind(thread.to_string())
            .fetch_all(&mut *connection)
            .await
            .map_err(statement("listing the names of a thread"))?;
        for row in rows {
            let name = row.text("name")?;
            if select == SAVED {
                // As they travel: in percent-encoded bytes.
                names.extend(name.parse().map(|name: FileName| name.as_bytes().to_vec()));
            } else {
                names.insert(name.into_bytes());
            }
        }
    }
    Ok(names)
}
