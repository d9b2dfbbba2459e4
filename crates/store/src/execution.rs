//! Executions and their events: what was run in a sandbox, and what happened meanwhile.

use chrono::{DateTime, Utc};
use glovebox_protocol::event::{Event, EventBody};
use glovebox_protocol::ids::{ExecutionId, SandboxId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json, to_ms};
use crate::error::StoreError;
use crate::words::words;

/// For how long a new execution counts as driven before anybody has marked it, in milliseconds.
const FIRST_DRIVE_MS: i64 = 30_000;

/// Those that run on paper only, before a time.
pub(crate) const UNDRIVEN: &str = "SELECT id, lease_id, workspace_id, state, created_at, ended_at \
     FROM executions WHERE state = 'running' AND driven_until < $1 ORDER BY id";

words! {
    /// Whether code still runs.
    ExecutionState {
        /// It does, or is about to.
        Running = "running",
        /// It does not.
        Ended = "ended",
    }
}

/// One run of code.
#[derive(Debug, Clone)]
pub struct Execution {
    /// Its id.
    pub id: ExecutionId,
    /// The sandbox that it runs in.
    pub lease_id: SandboxId,
    /// The workspace that the sandbox belongs to.
    pub workspace_id: WorkspaceId,
    /// Whether it still runs.
    pub state: ExecutionState,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
}

/// What a new execution is made of.
#[derive(Debug, Clone)]
pub struct NewExecution {
    /// Its id.
    pub id: ExecutionId,
    /// The sandbox that it is to run in.
    pub lease_id: SandboxId,
    /// The workspace that the sandbox belongs to.
    pub workspace_id: WorkspaceId,
    /// What the caller calls this request, so that it may be repeated.
    pub idempotency_key: Option<String>,
    /// A hash of what was asked for.
    pub request_hash: String,
}

/// What became of a wish to run code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// It is to be run.
    New,
    /// The same was asked for before, under this id.
    Repeated(ExecutionId),
    /// Something else was asked for under the same key.
    KeyIsTaken,
    /// Other code runs in the sandbox.
    Busy(ExecutionId),
    /// The sandbox takes no code: it was suspended or has ended meanwhile.
    NotReady,
}

fn read(row: &AnyRow) -> Result<Execution, StoreError> {
    Ok(Execution {
        id: row.word("id")?,
        lease_id: row.word("lease_id")?,
        workspace_id: row.word("workspace_id")?,
        state: row.word("state")?,
        created_at: row.time("created_at")?,
        ended_at: row.maybe_time("ended_at")?,
    })
}

impl Store {
    /// The execution with this id, in this sandbox.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn execution(
        &self,
        lease: SandboxId,
        id: ExecutionId,
    ) -> Result<Option<Execution>, StoreError> {
        let row = sqlx::query(
            "SELECT id, lease_id, workspace_id, state, created_at, ended_at FROM executions \
             WHERE id = $1 AND lease_id = $2",
        )
        .bind(id.to_string())
        .bind(lease.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading an execution"))?;
        row.as_ref().map(read).transpose()
    }

    /// The newest execution of a sandbox.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn newest_execution(
        &self,
        lease: SandboxId,
    ) -> Result<Option<Execution>, StoreError> {
        let row = sqlx::query(
            "SELECT id, lease_id, workspace_id, state, created_at, ended_at FROM executions \
             WHERE lease_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1",
        )
        .bind(lease.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for the newest execution of a sandbox"))?;
        row.as_ref().map(read).transpose()
    }

    /// Executions that still run, of one sandbox or of all.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn running_executions(
        &self,
        lease: Option<SandboxId>,
    ) -> Result<Vec<Execution>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, lease_id, workspace_id, state, created_at, ended_at FROM executions \
             WHERE state = 'running' AND ($1 = '' OR lease_id = $1) ORDER BY id",
        )
        .bind(lease.map_or_else(String::new, |id| id.to_string()))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing running executions"))?;
        rows.iter().map(read).collect()
    }

    /// Somebody drives these executions for some more seconds.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn mark_driven(&self, ids: &[ExecutionId], seconds: i64) -> Result<(), StoreError> {
        for id in ids {
            sqlx::query("UPDATE executions SET driven_until = $2 WHERE id = $1")
                .bind(id.to_string())
                .bind(now_ms() + seconds * 1000)
                .execute(&self.pool)
                .await
                .map_err(statement("marking an execution as driven"))?;
        }
        Ok(())
    }

    /// Executions that run on paper only: nobody drives them any more.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn undriven_executions(&self) -> Result<Vec<Execution>, StoreError> {
        let rows = sqlx::query(UNDRIVEN)
            .bind(now_ms())
            .fetch_all(&self.pool)
            .await
            .map_err(statement("looking for executions that nobody drives"))?;
        rows.iter().map(read).collect()
    }

    /// Keeps events of an execution, numbered on from `first`.
    ///
    /// # Errors
    /// When a statement fails; then none is kept.
    pub async fn keep_events(&self, id: ExecutionId, events: &[Event]) -> Result<(), StoreError> {
        let mut changes = self.begin().await?;
        for event in events {
            changes.keep_event(id, event).await?;
        }
        changes.commit().await
    }

    /// Keeps the last events of an execution, numbered on from those that are kept, and that it
    /// has ended.
    ///
    /// # Errors
    /// When a statement fails; then nothing is kept.
    pub async fn finish_execution(
        &self,
        id: ExecutionId,
        last: &[Event],
    ) -> Result<(), StoreError> {
        let mut changes = self.begin().await?;
        for event in last {
            changes.keep_event(id, event).await?;
        }
        changes.mark_ended(id).await?;
        changes.commit().await
    }

    /// Ends an execution that nobody drives any more. Says whether it still ran.
    ///
    /// # Errors
    /// When a statement fails; then nothing is kept.
    pub async fn end_execution(
        &self,
        id: ExecutionId,
        last: &[EventBody],
    ) -> Result<bool, StoreError> {
        let mut changes = self.begin().await?;
        if !changes.mark_ended(id).await? {
            return Ok(false);
        }
        let row =
            sqlx::query("SELECT COALESCE(MAX(seq), 0) AS n FROM events WHERE execution_id = $1")
                .bind(id.to_string())
                .fetch_one(&mut *changes.inner)
                .await
                .map_err(statement("counting events"))?;
        let first = u64::try_from(row.number("n")?).unwrap_or(0) + 1;
        for (seq, body) in (first..).zip(last) {
            let event = Event {
                seq,
                at: Utc::now(),
                body: body.clone(),
            };
            changes.keep_event(id, &event).await?;
        }
        changes.commit().await?;
        Ok(true)
    }

    /// Events of an execution after number `after`, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn events(
        &self,
        id: ExecutionId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Event>, StoreError> {
        let rows = sqlx::query(
            "SELECT seq, at, body FROM events WHERE execution_id = $1 AND seq > $2 \
             ORDER BY seq LIMIT $3",
        )
        .bind(id.to_string())
        .bind(i64::try_from(after).unwrap_or(i64::MAX))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading events"))?;
        rows.iter()
            .map(|row| {
                Ok(Event {
                    seq: u64::try_from(row.number("seq")?).unwrap_or(0),
                    at: row.time("at")?,
                    body: row.document("body")?,
                })
            })
            .collect()
    }
}

impl Transaction {
    /// Makes an execution, unless it was made before or other code runs in the sandbox.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn place_execution(&mut self, new: &NewExecution) -> Result<Placed, StoreError> {
        let lease = new.lease_id.to_string();
        // The lease's lock: of two at once, one comes second.
        let held = sqlx::query(
            "UPDATE leases SET active_at = $2 WHERE id = $1 AND state IN ('starting', 'ready') \
             AND last_collected_at IS NULL",
        )
        .bind(&lease)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("holding a lease"))?;
        if held.rows_affected() == 0 {
            return Ok(Placed::NotReady);
        }
        if let Some(key) = &new.idempotency_key {
            let row = sqlx::query(
                "SELECT id, request_hash FROM executions \
                 WHERE lease_id = $1 AND idempotency_key = $2",
            )
            .bind(&lease)
            .bind(key)
            .fetch_optional(&mut *self.inner)
            .await
            .map_err(statement("looking for the same request"))?;
            if let Some(row) = row {
                return Ok(if row.text("request_hash")? == new.request_hash {
                    Placed::Repeated(row.word("id")?)
                } else {
                    Placed::KeyIsTaken
                });
            }
        }
        let row = sqlx::query(
            "SELECT id FROM executions WHERE lease_id = $1 AND state = 'running' LIMIT 1",
        )
        .bind(&lease)
        .fetch_optional(&mut *self.inner)
        .await
        .map_err(statement("looking for running code"))?;
        if let Some(row) = row {
            return Ok(Placed::Busy(row.word("id")?));
        }
        sqlx::query(
            "INSERT INTO executions (id, lease_id, workspace_id, idempotency_key, request_hash, \
             state, created_at, driven_until) VALUES ($1, $2, $3, $4, $5, 'running', $6, $7)",
        )
        .bind(new.id.to_string())
        .bind(&lease)
        .bind(new.workspace_id.to_string())
        .bind(new.idempotency_key.clone())
        .bind(&new.request_hash)
        .bind(now_ms())
        .bind(now_ms() + FIRST_DRIVE_MS)
        .execute(&mut *self.inner)
        .await
        .map_err(statement("making an execution"))?;
        Ok(Placed::New)
    }

    async fn mark_ended(&mut self, id: ExecutionId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE executions SET state = 'ended', ended_at = $2 \
             WHERE id = $1 AND state = 'running'",
        )
        .bind(id.to_string())
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("ending an execution"))?;
        Ok(done.rows_affected() > 0)
    }

    async fn keep_event(&mut self, id: ExecutionId, event: &Event) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO events (execution_id, seq, at, body) VALUES ($1, $2, $3, $4)")
            .bind(id.to_string())
            .bind(i64::try_from(event.seq).unwrap_or(i64::MAX))
            .bind(to_ms(event.at))
            .bind(to_json("body", &event.body)?)
            .execute(&mut *self.inner)
            .await
            .map_err(statement("keeping an event"))?;
        Ok(())
    }
}
