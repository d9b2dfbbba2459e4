//! What is forgotten after a time: sessions that have run out, attempts to sign in that count no
//! more, and what was run in sandboxes that ended long ago. Never the audit log.
//!
//! Each call takes away a bounded number of rows, so that nobody else waits long for the database;
//! whoever calls comes again as long as there is more.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ExecutionId, SandboxId};

use crate::database::{Columns as _, Store, now_ms, statement, to_ms};
use crate::error::StoreError;

/// Sessions that ran out before a time.
pub(crate) const SESSIONS: &str = "DELETE FROM sessions WHERE id IN \
     (SELECT id FROM sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)";

/// Attempts to sign in from before a time. Several may bear the same time; all of them are over.
pub(crate) const ATTEMPTS: &str = "DELETE FROM sign_in_attempts WHERE at IN \
     (SELECT at FROM sign_in_attempts WHERE at < $1 ORDER BY at LIMIT $2)";

/// Sandboxes that ended before a time and of which something may be remembered.
pub(crate) const LEASES: &str = "SELECT id FROM leases WHERE state = 'ended' \
     AND forgotten_at IS NULL AND ended_at < $1 ORDER BY ended_at LIMIT $2";

/// Executions of a sandbox of which there is something to forget: one without a file goes, of one
/// with files the events do.
const EXECUTIONS: &str = "SELECT id FROM executions WHERE lease_id = $1 AND state = 'ended' \
     AND (NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.execution_id = executions.id) \
     OR EXISTS (SELECT 1 FROM events WHERE events.execution_id = executions.id)) \
     ORDER BY created_at LIMIT $2";

/// What is taken away of an execution, in this order.
const OF_EXECUTION: [&str; 2] = [
    "DELETE FROM events WHERE execution_id = $1",
    "DELETE FROM executions WHERE id = $1 AND NOT EXISTS \
     (SELECT 1 FROM artifacts WHERE artifacts.execution_id = executions.id)",
];

/// What is taken away of a sandbox after its executions. Its lease stays as long as a file says that
/// it came out of it.
const OF_LEASE: [&str; 2] = [
    "DELETE FROM staged_files WHERE lease_id = $1",
    "DELETE FROM leases WHERE id = $1 \
     AND NOT EXISTS (SELECT 1 FROM executions WHERE executions.lease_id = leases.id) \
     AND NOT EXISTS (SELECT 1 FROM artifacts WHERE artifacts.lease_id = leases.id)",
];

impl Store {
    /// Forgets sessions that ran out before `time`, at most `limit`. Says how many.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_sessions(
        &self,
        time: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, StoreError> {
        self.forget(SESSIONS, time, limit, "forgetting sessions that ran out")
            .await
    }

    /// Forgets attempts to sign in from before `time`, about `limit` at most. Says how many.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_sign_ins(
        &self,
        time: DateTime<Utc>,
        limit: u32,
    ) -> Result<u64, StoreError> {
        self.forget(ATTEMPTS, time, limit, "forgetting attempts to sign in")
            .await
    }

    async fn forget(
        &self,
        delete: &'static str,
        time: DateTime<Utc>,
        limit: u32,
        doing: &'static str,
    ) -> Result<u64, StoreError> {
        let done = sqlx::query(delete)
            .bind(to_ms(time))
            .bind(i64::from(limit))
            .execute(&self.pool)
            .await
            .map_err(statement(doing))?;
        Ok(done.rows_affected())
    }

    /// Forgets what was run in sandboxes that ended before `time`: at most `limit` executions with
    /// their events, and as many sandboxes. What left them stays, and so does the lease of a sandbox
    /// that a file came out of. Says how many executions and sandboxes that were.
    ///
    /// # Errors
    /// When a statement fails; what was forgotten before is forgotten.
    pub async fn forget_runs(&self, time: DateTime<Utc>, limit: u32) -> Result<u64, StoreError> {
        let rows = sqlx::query(LEASES)
            .bind(to_ms(time))
            .bind(i64::from(limit))
            .fetch_all(&self.pool)
            .await
            .map_err(statement("looking for sandboxes that ended long ago"))?;
        let mut left = u64::from(limit);
        let mut forgotten = 0;
        for row in rows {
            let lease: SandboxId = row.word("id")?;
            let executions = self.forget_executions(lease, left).await?;
            left -= executions;
            forgotten += executions;
            if left == 0 {
                break;
            }
            self.forget_lease(lease).await?;
            forgotten += 1;
        }
        Ok(forgotten)
    }

    async fn forget_executions(&self, lease: SandboxId, limit: u64) -> Result<u64, StoreError> {
        let rows = sqlx::query(EXECUTIONS)
            .bind(lease.to_string())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&self.pool)
            .await
            .map_err(statement("looking for executions of long ago"))?;
        for row in &rows {
            let execution: ExecutionId = row.word("id")?;
            let mut changes = self.begin().await?;
            for delete in OF_EXECUTION {
                sqlx::query(delete)
                    .bind(execution.to_string())
                    .execute(&mut *changes.inner)
                    .await
                    .map_err(statement("forgetting an execution"))?;
            }
            changes.commit().await?;
        }
        Ok(rows.len() as u64)
    }

    async fn forget_lease(&self, lease: SandboxId) -> Result<(), StoreError> {
        let mut changes = self.begin().await?;
        for delete in OF_LEASE {
            sqlx::query(delete)
                .bind(lease.to_string())
                .execute(&mut *changes.inner)
                .await
                .map_err(statement("forgetting a sandbox"))?;
        }
        // Where it is there still: it is not looked at again.
        sqlx::query("UPDATE leases SET forgotten_at = $2 WHERE id = $1")
            .bind(lease.to_string())
            .bind(now_ms())
            .execute(&mut *changes.inner)
            .await
            .map_err(statement("noting that a sandbox is forgotten"))?;
        changes.commit().await
    }
}
