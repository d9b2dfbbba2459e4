//! What deleted threads leave behind, and taking it away for good.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::ThreadId;

use crate::database::{Columns as _, Store, statement, to_ms};
use crate::error::StoreError;
use crate::objects::ObjectKey;

/// Statements that take away everything of a thread, each after what refers to its rows. Its
/// sandboxes stay as what they were for the quotas: sandboxes, of no thread.
const STATEMENTS: [&str; 10] = [
    "DELETE FROM thread_events WHERE thread_id = $1",
    "DELETE FROM artifacts WHERE thread_id = $1 AND bytes_of IS NOT NULL",
    "DELETE FROM artifacts WHERE thread_id = $1",
    "DELETE FROM attachments WHERE thread_id = $1",
    "DELETE FROM messages WHERE thread_id = $1 AND reply_to IS NOT NULL",
    "DELETE FROM messages WHERE thread_id = $1",
    "DELETE FROM events WHERE execution_id IN (SELECT executions.id FROM executions \
     JOIN leases ON leases.id = executions.lease_id WHERE leases.thread_id = $1)",
    "DELETE FROM staged_files WHERE lease_id IN (SELECT id FROM leases WHERE thread_id = $1)",
    "UPDATE leases SET thread_id = NULL WHERE thread_id = $1",
    "DELETE FROM threads WHERE id = $1",
];

/// Threads that were deleted before a time and in which nothing runs any more.
pub(crate) const DELETED: &str = "SELECT id FROM threads WHERE deleted_at < $1 \
     AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.thread_id = threads.id \
     AND messages.state = 'running') \
     AND NOT EXISTS (SELECT 1 FROM leases WHERE leases.thread_id = threads.id \
     AND leases.state <> 'ended') ORDER BY deleted_at LIMIT $2";

impl Store {
    /// Threads that were deleted before some time and in which nothing runs any more, at most
    /// `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn threads_deleted_before(
        &self,
        time: DateTime<Utc>,
        limit: u32,
    ) -> Result<Vec<ThreadId>, StoreError> {
        let rows = sqlx::query(DELETED)
            .bind(to_ms(time))
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(statement("looking for deleted threads"))?;
        rows.iter().map(|row| row.word("id")).collect()
    }

    /// The files of a thread, whoever may see them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn objects_of_thread(&self, id: ThreadId) -> Result<Vec<ObjectKey>, StoreError> {
        let artifacts =
            sqlx::query("SELECT id FROM artifacts WHERE thread_id = $1 AND bytes_of IS NULL")
                .bind(id.to_string())
                .fetch_all(&self.pool)
                .await
                .map_err(statement("listing the files of a thread"))?;
        let mut objects = Vec::with_capacity(artifacts.len());
        for row in artifacts {
            objects.push(ObjectKey::Artifact(row.word("id")?));
        }
        let attachments = self.attachments_of_thread(id).await?;
        objects.extend(attachments.iter().map(|file| file.id.into()));
        Ok(objects)
    }

    /// Takes away every row of a deleted thread.
    ///
    /// # Errors
    /// When a statement fails; then all of it is there still.
    pub async fn purge_thread(&self, id: ThreadId) -> Result<(), StoreError> {
        let mut changes = self.begin().await?;
        for delete in STATEMENTS {
            sqlx::query(delete)
                .bind(id.to_string())
                .execute(&mut *changes.inner)
                .await
                .map_err(statement("taking a deleted thread away"))?;
        }
        changes.commit().await
    }
}
