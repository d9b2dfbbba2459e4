//! Quotas: how much a workspace may use, and how much of that it uses.

use glovebox_protocol::ids::WorkspaceId;
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement};
use crate::error::StoreError;
use crate::lease::{LeasePurpose, NewLease, Owner};
use crate::workspace::Quotas;

/// A quota does not allow one more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuotaReached {
    /// `quota:max_concurrent`, …
    pub name: &'static str,
    /// The limit.
    pub limit: u64,
    /// How much is used.
    pub used: u64,
}

/// How much of its quotas a workspace uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meters {
    /// Sandboxes that count now.
    pub concurrent: u64,
    /// Sandboxes made in the last hour.
    pub started_last_hour: u64,
    /// Bytes of artifacts since midnight (UTC).
    pub artifact_bytes_today: u64,
    /// Bytes of attachments and of the knowledge base.
    pub uploaded_bytes: u64,
}

/// One hour, in milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// One day, in milliseconds: days begin at multiples of it.
const DAY_MS: i64 = 24 * HOUR_MS;

const CONCURRENT: &str = "SELECT COUNT(*) AS n FROM leases WHERE workspace_id = $1 \
     AND purpose = 'code' AND state IN ('starting', 'ready')";

const STARTED: &str = "SELECT COUNT(*) AS n FROM leases WHERE workspace_id = $1 \
     AND purpose = 'code' AND created_at > $2";

const STORED: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS n FROM artifacts \
     WHERE workspace_id = $1 AND created_at >= $2";

/// Also those of threads that were deleted, until they are taken away: their bytes are there.
const UPLOADED: &str = "SELECT CAST(COALESCE(SUM(files.bytes), 0) AS BIGINT) AS n FROM \
     (SELECT bytes FROM attachments WHERE workspace_id = $1 \
     UNION ALL SELECT bytes FROM knowledge_files WHERE workspace_id = $1) AS files";

/// A count of a database as the count that it is.
fn count(row: &AnyRow) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.number("n")?).unwrap_or(0))
}

/// When today began.
fn midnight_ms() -> i64 {
    let now = now_ms();
    now - now.rem_euclid(DAY_MS)
}

impl Store {
    /// How much of its quotas a workspace uses.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn meters(&self, workspace: WorkspaceId) -> Result<Meters, StoreError> {
        let failed = || statement("reading meters");
        let id = workspace.to_string();
        let concurrent = sqlx::query(CONCURRENT)
            .bind(&id)
            .fetch_one(&self.pool)
            .await
            .map_err(failed())?;
        let started = sqlx::query(STARTED)
            .bind(&id)
            .bind(now_ms() - HOUR_MS)
            .fetch_one(&self.pool)
            .await
            .map_err(failed())?;
        let stored = sqlx::query(STORED)
            .bind(&id)
            .bind(midnight_ms())
            .fetch_one(&self.pool)
            .await
            .map_err(failed())?;
        let uploaded = sqlx::query(UPLOADED)
            .bind(&id)
            .fetch_one(&self.pool)
            .await
            .map_err(failed())?;
        Ok(Meters {
            concurrent: count(&concurrent)?,
            started_last_hour: count(&started)?,
            artifact_bytes_today: count(&stored)?,
            uploaded_bytes: count(&uploaded)?,
        })
    }
}

impl Transaction {
    /// Makes a lease if the quotas of its workspace allow it. The workspace has to be
    /// [held](Transaction::hold_workspace) by these changes, or two may count at once.
    ///
    /// # Errors
    /// When a statement fails. That a quota is reached is an answer.
    pub async fn create_lease(
        &mut self,
        access: &Access,
        quotas: &Quotas,
        new: &NewLease,
    ) -> Result<Result<(), QuotaReached>, StoreError> {
        if let Err(reached) = self.has_room(access.workspace(), quotas).await? {
            return Ok(Err(reached));
        }
        let started = sqlx::query(STARTED)
            .bind(access.workspace().to_string())
            .bind(now_ms() - HOUR_MS)
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting new sandboxes"))?;
        if let Err(reached) = below(
            "quota:max_jobs_per_hour",
            count(&started)?,
            u64::from(quotas.max_jobs_per_hour),
        ) {
            return Ok(Err(reached));
        }
        let owner = Owner {
            workspace: access.workspace(),
            user: access.user(),
            api_key: access.api_key(),
            purpose: LeasePurpose::Code,
        };
        self.insert_lease(&owner, new).await?;
        Ok(Ok(()))
    }

    /// Whether one more sandbox may count now. The workspace has to be held.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn has_room(
        &mut self,
        workspace: WorkspaceId,
        quotas: &Quotas,
    ) -> Result<Result<(), QuotaReached>, StoreError> {
        let concurrent = sqlx::query(CONCURRENT)
            .bind(workspace.to_string())
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting sandboxes"))?;
        Ok(below(
            "quota:max_concurrent",
            count(&concurrent)?,
            u64::from(quotas.max_concurrent),
        ))
    }

    /// How many bytes of artifacts a workspace may still keep today. The workspace has to be
    /// held.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn artifact_bytes_left(
        &mut self,
        workspace: WorkspaceId,
        quotas: &Quotas,
    ) -> Result<u64, StoreError> {
        let stored = sqlx::query(STORED)
            .bind(workspace.to_string())
            .bind(midnight_ms())
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting the bytes of artifacts"))?;
        Ok(quotas
            .max_artifact_bytes_per_day
            .saturating_sub(count(&stored)?))
    }

    /// How many bytes people may still bring into a workspace. It has to be held.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn uploaded_bytes_left(
        &mut self,
        workspace: WorkspaceId,
        quotas: &Quotas,
    ) -> Result<u64, StoreError> {
        let uploaded = sqlx::query(UPLOADED)
            .bind(workspace.to_string())
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting the bytes of files that people brought"))?;
        Ok(quotas.max_uploaded_bytes.saturating_sub(count(&uploaded)?))
    }
}

fn below(name: &'static str, used: u64, limit: u64) -> Result<(), QuotaReached> {
    if used < limit {
        Ok(())
    } else {
        Err(QuotaReached { name, limit, used })
    }
}
