//! Leases: the server's record of each sandbox, from before it is made until after it is gone.

use chrono::{DateTime, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{ApiKeyId, ProfileId, SandboxId, ThreadId, UserId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::access::{Access, seen};
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json, to_ms};
use crate::error::StoreError;
use crate::thread::readable_threads;
use crate::words::words;

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

words! {
    /// What a sandbox is for.
    LeasePurpose {
        /// People's code. It counts for the quotas of its workspace.
        Code = "code",
        /// Making previews of files. It counts for no quota, and only system admins see it in lists.
        Preview = "preview",
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
    /// The thread whose code runs in it.
    pub thread_id: Option<ThreadId>,
    /// What it is for.
    pub purpose: LeasePurpose,
    /// How far it is.
    pub state: LeaseState,
    /// Its class.
    pub class: ResourceClass,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it was last used.
    pub active_at: DateTime<Utc>,
    /// Of one that is suspended: whether its processes are known to have ended.
    pub is_quiet: bool,
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
    /// The thread whose code is to run in it.
    pub thread_id: Option<ThreadId>,
    /// Its class.
    pub class: ResourceClass,
    /// After how many milliseconds without use its processes end.
    pub idle_limit_ms: i64,
    /// When it ends, used or not.
    pub hard_deadline: DateTime<Utc>,
}

/// Whose a new lease is, and what for.
#[derive(Debug)]
pub(crate) struct Owner {
    pub(crate) workspace: WorkspaceId,
    pub(crate) user: Option<UserId>,
    pub(crate) api_key: Option<ApiKeyId>,
    pub(crate) purpose: LeasePurpose,
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

/// The columns of a lease, for statements that name other tables too.
const COLUMNS: &str = "leases.id, leases.workspace_id, leases.profile_id, leases.user_id, \
     leases.api_key_id, leases.thread_id, leases.purpose, leases.state, leases.class, \
     leases.created_at, leases.active_at, leases.is_quiet, leases.idle_limit_ms, \
     leases.hard_deadline, leases.ended_at, leases.ended_why, leases.ended_detail";

/// All leases of sandboxes that are not gone.
pub(crate) fn live() -> String {
    format!("SELECT {COLUMNS} FROM leases WHERE state <> 'ended' ORDER BY id")
}

/// The condition that somebody may see a sandbox, within a workspace that is proven. What runs in a
/// thread's sandbox is the thread's: who may not read it any more does not see its sandbox either. The
/// places are those of the user, the key, and whether it manages the workspace.
pub(crate) fn visible(user: &str, key: &str, manages: &str) -> String {
    let seen = seen("leases", user, key, manages);
    let threads = readable_threads(user, key, manages);
    format!(
        "leases.purpose = 'code' AND {seen} AND (leases.thread_id IS NULL \
         OR leases.thread_id IN (SELECT threads.id FROM threads WHERE {threads}))"
    )
}

fn read(row: &AnyRow) -> Result<Lease, StoreError> {
    Ok(Lease {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        profile_id: row.word("profile_id")?,
        user_id: row.maybe_word("user_id")?,
        api_key_id: row.maybe_word("api_key_id")?,
        thread_id: row.maybe_word("thread_id")?,
        purpose: row.word("purpose")?,
        state: row.word("state")?,
        class: row.document("class")?,
        created_at: row.time("created_at")?,
        active_at: row.time("active_at")?,
        is_quiet: row.flag("is_quiet")?,
        idle_limit_ms: row.number("idle_limit_ms")?,
        hard_deadline: row.time("hard_deadline")?,
        ended_at: row.maybe_time("ended_at")?,
        ended_why: row.maybe_word("ended_why")?,
        ended_detail: row.maybe_text("ended_detail")?,
    })
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
        let visible = visible("$3", "$4", "$5");
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM leases WHERE leases.id = $1 AND leases.workspace_id = $2 \
             AND {visible}"
        )))
        .bind(id.to_string())
        .bind(access.workspace().to_string())
        .bind(access.user_text())
        .bind(access.api_key_text())
        .bind(access.manages())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a lease"))?;
        row.as_ref().map(read).transpose()
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
        let visible = visible("$3", "$4", "$5");
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM leases WHERE workspace_id = $1 AND id < $2 AND {visible} \
             ORDER BY id DESC LIMIT $6"
        )))
        .bind(access.workspace().to_string())
        .bind(before.map_or_else(|| "g".into(), |id| id.to_string()))
        .bind(access.user_text())
        .bind(access.api_key_text())
        .bind(access.manages())
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing leases"))?;
        rows.iter().map(read).collect()
    }

    /// The sandbox of a thread that is not gone: there is one at most.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn lease_of_thread(&self, thread: ThreadId) -> Result<Option<Lease>, StoreError> {
        let leases = self.leases_of_thread(thread).await?;
        Ok(leases
            .into_iter()
            .find(|lease| lease.state != LeaseState::Ended))
    }

    /// All sandboxes that a thread has had, the newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn leases_of_thread(&self, thread: ThreadId) -> Result<Vec<Lease>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM leases WHERE thread_id = $1 AND purpose = 'code' \
             ORDER BY id DESC LIMIT 100"
        )))
        .bind(thread.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing the leases of a thread"))?;
        rows.iter().map(read).collect()
    }

    /// All leases of sandboxes that are not gone, for the system itself, the oldest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn live_leases(&self) -> Result<Vec<Lease>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(live()))
            .fetch_all(&self.pool)
            .await
            .map_err(statement("listing live leases"))?;
        rows.iter().map(read).collect()
    }

    /// The same with the names that people know, for system admins. Those of previews are among them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn live_leases_with_names(&self) -> Result<Vec<(Lease, LeaseNames)>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS}, workspaces.name AS workspace_name, profiles.name AS profile_name, \
             users.email FROM leases \
             JOIN workspaces ON workspaces.id = leases.workspace_id \
             JOIN profiles ON profiles.id = leases.profile_id \
             LEFT JOIN users ON users.id = leases.user_id \
             WHERE leases.state <> 'ended' ORDER BY leases.id"
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
}

impl Transaction {
    /// Makes the lease of a sandbox for previews: nobody's, and beside all quotas.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn create_preview_lease(
        &mut self,
        workspace: WorkspaceId,
        new: &NewLease,
    ) -> Result<(), StoreError> {
        let owner = Owner {
            workspace,
            user: None,
            api_key: None,
            purpose: LeasePurpose::Preview,
        };
        self.insert_lease(&owner, new).await
    }

    pub(crate) async fn insert_lease(
        &mut self,
        owner: &Owner,
        new: &NewLease,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO leases (id, workspace_id, profile_id, user_id, api_key_id, thread_id, \
             purpose, state, class, created_at, active_at, idle_limit_ms, hard_deadline) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, 'starting', $8, $9, $9, $10, $11)",
        )
        .bind(new.id.to_string())
        .bind(owner.workspace.to_string())
        .bind(new.profile_id.to_string())
        .bind(owner.user.map(|id| id.to_string()))
        .bind(owner.api_key.map(|id| id.to_string()))
        .bind(new.thread_id.map(|id| id.to_string()))
        .bind(owner.purpose.as_str())
        .bind(to_json("class", &new.class)?)
        .bind(now_ms())
        .bind(new.idle_limit_ms)
        .bind(to_ms(new.hard_deadline))
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("making a lease"))
    }
}
