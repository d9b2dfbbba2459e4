//! Leases: the server's record of each sandbox, from before it is made until after it is gone.

use chrono::{DateTime, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{ApiKeyId, ProfileId, SandboxId, UserId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_ms};
use crate::error::StoreError;
use crate::words::words;
use crate::workspace::Quotas;

words! {
    /// How far a sandbox is.
    LeaseState {
        /// It is being made.
        Starting = "starting",
        /// It takes code.
        Ready = "ready",
        /// Its processes were ended after a time without use; its files are there.
        Suspended = "suspended",
        /// It is gone.
        Ended = "ended",
    }
}

words! {
    /// Why a sandbox is gone.
    EndedWhy {
        /// Whoever had it asked for that.
        Asked = "asked",
        /// A system admin asked for that.
        Admin = "admin",
        /// Nobody used it, and its runtime cannot keep its files without its processes.
        Idle = "idle",
        /// It reached the time at which every sandbox of its profile ends.
        HardLimit = "hard_limit",
        /// Memory ran out.
        OutOfMemory = "out_of_memory",
        /// It could not be made.
        StartFailed = "start_failed",
        /// The gateway does not know it any more.
        GatewayLost = "gateway_lost",
    }
}

/// The record of one sandbox.
#[derive(Debug, Clone)]
pub struct Lease {
    /// The sandbox.
    pub id: SandboxId,
    /// The workspace that it counts for.
    pub workspace_id: WorkspaceId,
    /// The profile that it was made on.
    pub profile_id: ProfileId,
    /// Whose it is; `None` for a service's.
    pub user_id: Option<UserId>,
    /// The key that it was asked for with.
    pub api_key_id: Option<ApiKeyId>,
    /// How far it is.
    pub state: LeaseState,
    /// Its class.
    pub class: ResourceClass,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it was last used.
    pub active_at: DateTime<Utc>,
    /// After how many milliseconds without use its processes end.
    pub idle_limit_ms: i64,
    /// When it ends, used or not.
    pub hard_deadline: DateTime<Utc>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why.
    pub ended_why: Option<EndedWhy>,
    /// The same in words.
    pub ended_detail: Option<String>,
}

/// What a new lease is made of.
#[derive(Debug, Clone)]
pub struct NewLease {
    /// The sandbox.
    pub id: SandboxId,
    /// The profile that it is made on.
    pub profile_id: ProfileId,
    /// Its class.
    pub class: ResourceClass,
    /// After how many milliseconds without use its processes end.
    pub idle_limit_ms: i64,
    /// When it ends, used or not.
    pub hard_deadline: DateTime<Utc>,
}

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
}

/// What people call those that a lease belongs to.
#[derive(Debug, Clone)]
pub struct LeaseNames {
    /// The workspace.
    pub workspace: String,
    /// The profile.
    pub profile: String,
    /// The address of the person; `None` for a service's.
    pub user_email: Option<String>,
}

const COLUMNS: &str = "id, workspace_id, profile_id, user_id, api_key_id, state, class, \
     created_at, active_at, idle_limit_ms, hard_deadline, ended_at, ended_why, ended_detail";

/// One hour, in milliseconds.
const HOUR_MS: i64 = 3_600_000;

/// One day, in milliseconds: days begin at multiples of it.
const DAY_MS: i64 = 24 * HOUR_MS;

fn read(row: &AnyRow) -> Result<Lease, StoreError> {
    Ok(Lease {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        profile_id: row.word("profile_id")?,
        user_id: row.maybe_word("user_id")?,
        api_key_id: row.maybe_word("api_key_id")?,
        state: row.word("state")?,
        class: row.document("class")?,
        created_at: row.time("created_at")?,
        active_at: row.time("active_at")?,
        idle_limit_ms: row.number("idle_limit_ms")?,
        hard_deadline: row.time("hard_deadline")?,
        ended_at: row.maybe_time("ended_at")?,
        ended_why: row.maybe_word("ended_why")?,
        ended_detail: row.maybe_text("ended_detail")?,
    })
}

const CONCURRENT: &str = "SELECT COUNT(*) AS n FROM leases WHERE workspace_id = $1 \
     AND state IN ('starting', 'ready') AND purpose = 'code'";

const STARTED: &str = "SELECT COUNT(*) AS n FROM leases WHERE workspace_id = $1 \
     AND created_at > $2 AND purpose = 'code'";

const STORED: &str = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) AS n FROM artifacts \
     WHERE workspace_id = $1 AND created_at >= $2";

/// A count of a database as the count that it is.
fn count(row: &AnyRow) -> Result<u64, StoreError> {
    Ok(u64::try_from(row.number("n")?).unwrap_or(0))
}

/// When today began.
pub(crate) fn midnight_ms() -> i64 {
    let now = now_ms();
    now - now.rem_euclid(DAY_MS)
}

impl Store {
    /// The lease with this id, for the system itself.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn lease(&self, id: SandboxId) -> Result<Option<Lease>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM leases WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a lease"))?;
        row.as_ref().map(read).transpose()
    }

    /// The lease with this id, if whoever asks may see it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn lease_of(
        &self,
        access: &Access,
        id: SandboxId,
    ) -> Result<Option<Lease>, StoreError> {
        let lease = self.lease(id).await?;
        Ok(lease.filter(|lease| {
            lease.workspace_id == access.workspace()
                && access.may_see(lease.user_id, lease.api_key_id)
        }))
    }

    /// Leases of a workspace that whoever asks may see, the newest first: those older than
    /// `before`, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn leases_of(
        &self,
        access: &Access,
        before: Option<SandboxId>,
        limit: u32,
    ) -> Result<Vec<Lease>, StoreError> {
        let manages = access.may(crate::access::Permission::Manage);
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM leases WHERE workspace_id = $1 AND id < $2 AND purpose = 'code' \
             AND (user_id = $3 OR (user_id IS NULL AND (api_key_id = $4 OR $5 = 1))) \
             ORDER BY id DESC LIMIT $6"
        )))
        .bind(access.workspace().to_string())
        .bind(before.map_or_else(|| "g".into(), |id| id.to_string()))
        .bind(access.user().map_or_else(String::new, |id| id.to_string()))
        .bind(
            access
                .api_key()
                .map_or_else(String::new, |id| id.to_string()),
        )
        .bind(i64::from(manages))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing leases"))?;
        rows.iter().map(read).collect()
    }

    /// All leases of sandboxes that are not gone, for the system itself, the oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn live_leases(&self) -> Result<Vec<Lease>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM leases WHERE state <> 'ended' ORDER BY id"
        )))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing live leases"))?;
        rows.iter().map(read).collect()
    }

    /// The same with the names that people know, for system admins.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn live_leases_with_names(&self) -> Result<Vec<(Lease, LeaseNames)>, StoreError> {
        let columns: Vec<_> = COLUMNS
            .split(", ")
            .map(|column| format!("leases.{}", column.trim()))
            .collect();
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {}, workspaces.name AS workspace_name, profiles.name AS profile_name, \
             users.email FROM leases \
             JOIN workspaces ON workspaces.id = leases.workspace_id \
             JOIN profiles ON profiles.id = leases.profile_id \
             LEFT JOIN users ON users.id = leases.user_id \
             WHERE leases.state <> 'ended' AND leases.purpose = 'code' ORDER BY leases.id",
            columns.join(", ")
        )))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing live leases"))?;
        rows.iter()
            .map(|row| {
                let names = LeaseNames {
                    workspace: row.text("workspace_name")?,
                    profile: row.text("profile_name")?,
                    user_email: row.maybe_text("email")?,
                };
                Ok((read(row)?, names))
            })
            .collect()
    }

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
        Ok(Meters {
            concurrent: count(&concurrent)?,
            started_last_hour: count(&started)?,
            artifact_bytes_today: count(&stored)?,
        })
    }

    /// Moves a lease from one of some states to another one. Says whether it was in one of them.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn move_lease(
        &self,
        id: SandboxId,
        from: LeaseState,
        to: LeaseState,
    ) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "UPDATE leases SET state = $3, active_at = $4 WHERE id = $1 AND state = $2",
        )
        .bind(id.to_string())
        .bind(from.as_str())
        .bind(to.as_str())
        .bind(now_ms())
        .execute(&self.pool)
        .await
        .map_err(statement("moving a lease"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Notes that a sandbox is used just now.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn touch_lease(&self, id: SandboxId) -> Result<(), StoreError> {
        sqlx::query("UPDATE leases SET active_at = $2 WHERE id = $1")
            .bind(id.to_string())
            .bind(now_ms())
            .execute(&self.pool)
            .await
            .map_err(statement("noting the use of a sandbox"))?;
        Ok(())
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
        let id = access.workspace().to_string();
        let started = sqlx::query(STARTED)
            .bind(&id)
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
        sqlx::query(
            "INSERT INTO leases (id, workspace_id, profile_id, user_id, api_key_id, state, \
             class, created_at, active_at, idle_limit_ms, hard_deadline) \
             VALUES ($1, $2, $3, $4, $5, 'starting', $6, $7, $7, $8, $9)",
        )
        .bind(new.id.to_string())
        .bind(id)
        .bind(new.profile_id.to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(access.api_key().map(|id| id.to_string()))
        .bind(crate::database::to_json("class", &new.class)?)
        .bind(now_ms())
        .bind(new.idle_limit_ms)
        .bind(to_ms(new.hard_deadline))
        .execute(&mut *self.inner)
        .await
        .map_err(statement("making a lease"))?;
        Ok(Ok(()))
    }

    /// Makes the lease of a sandbox for previews: nobody's, and beside all quotas.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn create_preview_lease(
        &mut self,
        workspace: WorkspaceId,
        new: &NewLease,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO leases (id, workspace_id, profile_id, purpose, state, class, created_at, \
             active_at, idle_limit_ms, hard_deadline) \
             VALUES ($1, $2, $3, 'preview', 'starting', $4, $5, $5, $6, $7)",
        )
        .bind(new.id.to_string())
        .bind(workspace.to_string())
        .bind(new.profile_id.to_string())
        .bind(crate::database::to_json("class", &new.class)?)
        .bind(now_ms())
        .bind(new.idle_limit_ms)
        .bind(to_ms(new.hard_deadline))
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("making the lease of a sandbox for previews"))
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
}

fn below(name: &'static str, used: u64, limit: u64) -> Result<(), QuotaReached> {
    if used < limit {
        Ok(())
    } else {
        Err(QuotaReached { name, limit, used })
    }
}
