//! Queues: what is to be done later, by whichever worker takes it first.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::TaskId;
use serde_json::Value;

use crate::database::{
    Backend, Columns as _, Store, Transaction, now_ms, statement, to_json, to_ms,
};
use crate::error::StoreError;

/// One thing to do.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What kind of work it is.
    pub kind: String,
    /// What it is about: one task of a kind for each.
    pub subject: String,
    /// What the work needs to know.
    pub payload: Value,
    /// How often it was taken, this time included.
    pub attempts: i64,
}

impl Store {
    /// Takes the task of a queue that is due longest, for `milliseconds`; after them somebody
    /// else may take it.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn take_task(
        &self,
        queue: &str,
        milliseconds: i64,
    ) -> Result<Option<Task>, StoreError> {
        let mut changes = self.begin().await?;
        let now = now_ms();
        // On SQLite there is one writer at a time anyway.
        let select = match self.backend() {
            Backend::Sqlite => {
                "SELECT id, kind, subject, payload, attempts FROM tasks WHERE queue = $1 \
                 AND due_at <= $2 AND COALESCE(taken_until, 0) <= $2 ORDER BY due_at LIMIT 1"
            }
            Backend::Postgres => {
                "SELECT id, kind, subject, payload, attempts FROM tasks WHERE queue = $1 \
                 AND due_at <= $2 AND COALESCE(taken_until, 0) <= $2 ORDER BY due_at LIMIT 1 \
                 FOR UPDATE SKIP LOCKED"
            }
        };
        let row = sqlx::query(select)
            .bind(queue)
            .bind(now)
            .fetch_optional(&mut *changes.inner)
            .await
            .map_err(statement("looking for a task"))?;
        let Some(row) = row else { return Ok(None) };
        let task = Task {
            id: row.word("id")?,
            kind: row.text("kind")?,
            subject: row.text("subject")?,
            payload: row.document("payload")?,
            attempts: row.number("attempts")? + 1,
        };
        sqlx::query("UPDATE tasks SET taken_until = $2, attempts = $3 WHERE id = $1")
            .bind(task.id.to_string())
            .bind(now.saturating_add(milliseconds))
            .bind(task.attempts)
            .execute(&mut *changes.inner)
            .await
            .map_err(statement("taking a task"))?;
        changes.commit().await?;
        Ok(Some(task))
    }

    /// Whoever took a task needs it for `milliseconds` more. Says whether it is still theirs:
    /// once their time was over, somebody else may have taken it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hold_task(&self, task: &Task, milliseconds: i64) -> Result<bool, StoreError> {
        let done = sqlx::query("UPDATE tasks SET taken_until = $3 WHERE id = $1 AND attempts = $2")
            .bind(task.id.to_string())
            .bind(task.attempts)
            .bind(now_ms().saturating_add(milliseconds))
            .execute(&self.pool)
            .await
            .map_err(statement("holding a task"))?;
        Ok(done.rows_affected() > 0)
    }

    /// A task is done.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn finish_task(&self, id: TaskId) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM tasks WHERE id = $1")
            .bind(id.to_string())
            .execute(&self.pool)
            .await
            .map_err(statement("finishing a task"))?;
        Ok(())
    }

    /// A task that comes again and again is done for this time, and due again at `due`.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn repeat_task(&self, id: TaskId, due: DateTime<Utc>) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE tasks SET taken_until = NULL, due_at = $2, attempts = 0, last_error = NULL \
             WHERE id = $1",
        )
        .bind(id.to_string())
        .bind(to_ms(due))
        .execute(&self.pool)
        .await
        .map_err(statement("putting a task off"))?;
        Ok(())
    }

    /// A task is to be tried again at `due`, and why.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn retry_task(
        &self,
        id: TaskId,
        due: DateTime<Utc>,
        error: &str,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE tasks SET taken_until = NULL, due_at = $2, last_error = $3 WHERE id = $1",
        )
        .bind(id.to_string())
        .bind(to_ms(due))
        .bind(error)
        .execute(&self.pool)
        .await
        .map_err(statement("putting a task off"))?;
        Ok(())
    }
}

impl Transaction {
    /// Puts a task into a queue, unless one of this kind and subject is there.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn enqueue(
        &mut self,
        queue: &str,
        kind: &str,
        subject: &str,
        payload: &Value,
        due: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO tasks (id, queue, kind, subject, payload, due_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (queue, kind, subject) DO NOTHING",
        )
        .bind(TaskId::new().to_string())
        .bind(queue)
        .bind(kind)
        .bind(subject)
        .bind(to_json("payload", payload)?)
        .bind(to_ms(due))
        .execute(&mut *self.inner)
        .await
        .map_err(statement("putting a task into a queue"))?;
        Ok(())
    }
}
