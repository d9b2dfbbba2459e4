//! How leases come to their end: suspended after a time without use, collected from for the last
//! time, ended, and forgotten.

use glovebox_protocol::ids::SandboxId;

use crate::database::{Store, Transaction, now_ms, statement};
use crate::error::StoreError;
use crate::lease::{EndedWhy, LeasePurpose};

impl Store {
    /// Suspends a sandbox that nobody has used for as long as its idle limit and in which nothing
    /// runs, as it is at this moment. Says whether it was so. Its processes are still there.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn suspend_idle_lease(&self, id: SandboxId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE leases SET state = 'suspended', is_quiet = 0, active_at = $2 \
             WHERE id = $1 AND state = 'ready' AND active_at + idle_limit_ms <= $2 \
             AND NOT EXISTS (SELECT 1 FROM executions \
             WHERE executions.lease_id = leases.id AND executions.state = 'running')",
        )
        .bind(id.to_string())
        .bind(now_ms())
        .execute(&self.pool)
        .await
        .map_err(statement("suspending a lease"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Notes that the processes of a suspended sandbox have ended.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn note_quiet(&self, id: SandboxId) -> Result<(), StoreError> {
        sqlx::query("UPDATE leases SET is_quiet = 1 WHERE id = $1 AND state = 'suspended'")
            .bind(id.to_string())
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("noting that a sandbox is quiet"))
    }

    /// Begins to collect for the last time what is in a sandbox. Says whether nobody has before: of
    /// several that notice its hard limit one collects.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn begin_last_collection(&self, id: SandboxId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE leases SET last_collected_at = $2 WHERE id = $1 \
             AND state IN ('ready', 'suspended') AND last_collected_at IS NULL",
        )
        .bind(id.to_string())
        .bind(now_ms())
        .execute(&self.pool)
        .await
        .map_err(statement("beginning a last collection"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Notes that a sandbox is gone, and why. The first reason stays. Says whether this was it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end_lease(
        &self,
        id: SandboxId,
        why: EndedWhy,
        detail: &str,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE leases SET state = 'ended', ended_at = $2, ended_why = $3, \
             ended_detail = $4 WHERE id = $1 AND state <> 'ended'",
        )
        .bind(id.to_string())
        .bind(now_ms())
        .bind(why.as_str())
        .bind(detail)
        .execute(&self.pool)
        .await
        .map_err(statement("ending a lease"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Leaves nothing of the lease of a sandbox for previews that could not be made, and of which nothing is
    /// there.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn forget_start(&self, id: SandboxId) -> Result<(), StoreError> {
        sqlx::query(
            "DELETE FROM leases WHERE id = $1 AND purpose = $2 AND state = 'ended' \
             AND ended_why = $3",
        )
        .bind(id.to_string())
        .bind(LeasePurpose::Preview.as_str())
        .bind(EndedWhy::StartFailed.as_str())
        .execute(&self.pool)
        .await
        .map_err(statement("forgetting a lease"))?;
        Ok(())
    }
}

impl Transaction {
    /// A suspended sandbox counts again. Says whether it was suspended.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn resume_lease(&mut self, id: SandboxId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE leases SET state = 'ready', active_at = $2 \
             WHERE id = $1 AND state = 'suspended'",
        )
        .bind(id.to_string())
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("resuming a lease"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Notes that all sandboxes are gone, or about to be: the worker ends those that are there
    /// still. Says how many there were.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end_live_leases(
        &mut self,
        why: EndedWhy,
        detail: &str,
    ) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "UPDATE leases SET state = 'ended', ended_at = $1, ended_why = $2, \
             ended_detail = $3 WHERE state <> 'ended'",
        )
        .bind(now_ms())
        .bind(why.as_str())
        .bind(detail)
        .execute(&mut *self.inner)
        .await
        .map_err(statement("ending all leases"))?;
        Ok(done.rows_affected())
    }
}
