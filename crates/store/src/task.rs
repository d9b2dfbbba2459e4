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

/// What a new task is made of.
#[derive(Debug, Clone, Copy)]
pub struct NewTask<'a> {
    /// The queue that it goes into.
    pub queue: &'a str,
    /// What kind of work it is.
    pub kind: &'a str,
    /// What it is about.
    pub subject: &'a str,
    /// For whom it is done: those for whom something is done take turns. Empty where it is for all.
    pub share: &'a str,
    /// What the work needs to know.
    pub payload: &'a Value,
    /// When it is due.
    pub due: DateTime<Utc>,
}

/// How a task stands that is waited for.
#[derive(Debug, Clone)]
pub struct TaskStanding {
    /// When it is due.
    pub due_at: DateTime<Utc>,
    /// Why it was put off, where it was.
    pub last_error: Option<String>,
    /// Whether somebody does it.
    pub is_taken: bool,
    /// Whether somebody does others of its queue and kind.
    pub others_are_taken: bool,
}

impl Store {
    /// How a task stands; nothing where there is none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn task_standing(
        &self,
        queue: &str,
        kind: &str,
        subject: &str,
    ) -> Result<Option<TaskStanding>, StoreError> {
        let now = now_ms();
        let row = sqlx::query(
            "SELECT due_at, last_error, COALESCE(taken_until, 0) AS taken_until, \
             (SELECT COUNT(*) FROM tasks AS others WHERE others.queue = $1 AND others.kind = $2 \
             AND others.subject <> $3 AND COALESCE(others.taken_until, 0) > $4) AS others_taken \
             FROM tasks WHERE queue = $1 AND kind = $2 AND subject = $3",
        )
        .bind(queue)
        .bind(kind)
        .bind(subject)
        .bind(now)
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking how a task stands"))?;
        row.map(|row| {
            Ok(TaskStanding {
                due_at: row.time("due_at")?,
                last_error: row.maybe_text("last_error")?,
                is_taken: row.number("taken_until")? > now,
                others_are_taken: row.number("others_taken")? > 0,
            })
        })
        .transpose()
    }

    /// Takes a task of a queue that is due, for `milliseconds`; after them somebody else may take
    /// it. Of several shares the one comes first for which a task was taken longest ago, and of one
    /// share the task that is due longest.
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
        let select = "SELECT tasks.id, kind, subject, payload, attempts, tasks.share FROM tasks \
             LEFT JOIN task_turns ON task_turns.queue = tasks.queue \
             AND task_turns.share = tasks.share WHERE tasks.queue = $1 \
             AND due_at <= $2 AND COALESCE(taken_until, 0) <= $2 \
             ORDER BY COALESCE(task_turns.turn, 0), due_at LIMIT 1";
        let lock = match self.backend() {
            // There is one writer at a time anyway.
            Backend::Sqlite => "",
            Backend::Postgres => " FOR UPDATE OF tasks SKIP LOCKED",
        };
        let row = sqlx::query(sqlx::AssertSqlSafe(format!("{select}{lock}")))
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
        changes.take_turn(queue, &row.text("share")?).await?;
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
    /// Puts a task that is done for all into a queue, unless one of this kind and subject is there.
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
        let share = "";
        self.enqueue_new(&NewTask {
            queue,
            kind,
            subject,
            share,
            payload,
            due,
        })
        .await
    }

    /// Puts a task into a queue, unless one of its kind and subject is there.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn enqueue_new(&mut self, new: &NewTask<'_>) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO tasks (id, queue, kind, subject, payload, due_at, share) \
             VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (queue, kind, subject) DO NOTHING",
        )
        .bind(TaskId::new().to_string())
        .bind(new.queue)
        .bind(new.kind)
        .bind(new.subject)
        .bind(to_json("payload", new.payload)?)
        .bind(to_ms(new.due))
        .bind(new.share)
        .execute(&mut *self.inner)
        .await
        .map_err(statement("putting a task into a queue"))?;
        Ok(())
    }

    /// A task was taken for somebody: all others of the queue come before the next one.
    async fn take_turn(&mut self, queue: &str, share: &str) -> Result<(), StoreError> {
        if share.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "INSERT INTO task_turns (queue, share, turn) VALUES ($1, $2, \
             (SELECT COALESCE(MAX(turn), 0) + 1 FROM task_turns WHERE queue = $1)) \
             ON CONFLICT (queue, share) DO UPDATE SET turn = excluded.turn",
        )
        .bind(queue)
        .bind(share)
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("noting for whom a task was taken"))
    }
}
