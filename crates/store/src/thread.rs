//! Threads of chat: whose they are, who reads and writes them, and what happened in them.

use chrono::{DateTime, Utc};
use glovebox_protocol::file::is_deceptive;
use glovebox_protocol::ids::{ApiKeyId, MessageId, ThreadId, UserId, WorkspaceId};
use glovebox_protocol::thread::ThreadEventBody;
use sqlx::any::AnyRow;
use unicode_normalization::UnicodeNormalization as _;

use crate::access::{Access, Permission, seen};
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json};
use crate::error::StoreError;

/// One conversation in a workspace.
#[derive(Debug, Clone)]
pub struct Thread {
    /// Its id.
    pub id: ThreadId,
    /// The workspace that it belongs to.
    pub workspace_id: WorkspaceId,
    /// Whose it is; `None` for a service's.
    pub user_id: Option<UserId>,
    /// The key that it was made with.
    pub api_key_id: Option<ApiKeyId>,
    /// What people call its owner.
    pub owner: String,
    /// What it is called.
    pub title: String,
    /// Whether somebody gave it its title; one that was made from the first message is not given.
    pub is_titled: bool,
    /// Whether every member of the workspace reads it.
    pub is_shared: bool,
    /// Counts up with each change of title and sharing.
    pub version: i64,
    /// The number of its newest event.
    pub last_seq: u64,
    /// The reply that is on its way.
    pub running_reply: Option<MessageId>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When something last happened in it.
    pub active_at: DateTime<Utc>,
}

/// What a new thread is made of.
#[derive(Debug, Clone)]
pub struct NewThread {
    /// Its id.
    pub id: ThreadId,
    /// What it is called, where somebody says.
    pub title: Option<String>,
    /// Whether every member of the workspace reads it.
    pub is_shared: bool,
}

/// A place in the list of threads, the last active first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadPlace {
    /// When something last happened in the thread.
    pub active_at: DateTime<Utc>,
    /// The thread.
    pub id: ThreadId,
}

/// What a thread is called before its first message.
pub const UNTITLED: &str = "New thread";

const COLUMNS: &str = "threads.id, threads.workspace_id, threads.user_id, threads.api_key_id, \
     COALESCE(users.name, api_keys.name, '') AS owner, threads.title, threads.is_titled, \
     threads.is_shared, threads.version, threads.last_seq, threads.created_at, \
     threads.active_at, (SELECT MAX(messages.id) FROM messages \
     WHERE messages.thread_id = threads.id AND messages.state = 'running') AS running_reply";

const FROM: &str = "threads LEFT JOIN users ON users.id = threads.user_id \
     LEFT JOIN api_keys ON api_keys.id = threads.api_key_id";

/// The condition on rows of `threads` that somebody may read them, within a workspace that is
/// proven: the places are those of the user, the key, and whether it manages the workspace.
pub(crate) fn readable_threads(user: &str, key: &str, manages: &str) -> String {
    let seen = seen("threads", user, key, manages);
    format!("threads.deleted_at IS NULL AND (threads.is_shared = 1 OR {seen})")
}

fn read(row: &AnyRow) -> Result<Thread, StoreError> {
    Ok(Thread {
        id: row.word("id")?,
        workspace_id: row.word("workspace_id")?,
        user_id: row.maybe_word("user_id")?,
        api_key_id: row.maybe_word("api_key_id")?,
        owner: row.text("owner")?,
        title: row.text("title")?,
        is_titled: row.flag("is_titled")?,
        is_shared: row.flag("is_shared")?,
        version: row.number("version")?,
        last_seq: u64::try_from(row.number("last_seq")?).unwrap_or(0),
        running_reply: row.maybe_word("running_reply")?,
        created_at: row.time("created_at")?,
        active_at: row.time("active_at")?,
    })
}

impl Thread {
    /// Whether it is one's own.
    #[must_use]
    pub fn is_own(&self, access: &Access) -> bool {
        access.is_own(self.user_id, self.api_key_id)
    }

    /// Whether somebody may read it.
    #[must_use]
    pub fn may_read(&self, access: &Access) -> bool {
        self.workspace_id == access.workspace()
            && (self.is_shared || access.may_see(self.user_id, self.api_key_id))
    }

    /// Whether somebody may write into it.
    #[must_use]
    pub fn may_write(&self, access: &Access) -> bool {
        self.may_read(access)
            && access.may(Permission::Write)
            && (self.is_shared || self.is_own(access))
    }

    /// Whether somebody may rename, share and delete it: its owner; a service's also whoever
    /// manages the workspace.
    #[must_use]
    pub fn may_change(&self, access: &Access) -> bool {
        self.workspace_id == access.workspace() && access.may_see(self.user_id, self.api_key_id)
    }

    /// Its place in the list.
    #[must_use]
    pub const fn place(&self) -> ThreadPlace {
        ThreadPlace {
            active_at: self.active_at,
            id: self.id,
        }
    }
}

impl Store {
    /// The thread with this id, for the system itself. One that was deleted is not there.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn thread(&self, id: ThreadId) -> Result<Option<Thread>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE threads.id = $1 AND threads.deleted_at IS NULL"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a thread"))?;
        row.as_ref().map(read).transpose()
    }

    /// The thread with this id, if whoever asks may read it.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn thread_of(
        &self,
        access: &Access,
        id: ThreadId,
    ) -> Result<Option<Thread>, StoreError> {
        let thread = self.thread(id).await?;
        Ok(thread.filter(|thread| thread.may_read(access)))
    }

    /// Threads that whoever asks may read, the last active first: those after a place in that
    /// order, whose title holds `part`, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn threads_of(
        &self,
        access: &Access,
        after: Option<ThreadPlace>,
        part: &str,
        limit: u32,
    ) -> Result<Vec<Thread>, StoreError> {
        let readable = readable_threads("$2", "$3", "$4");
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE threads.workspace_id = $1 AND {readable} \
             AND (threads.active_at < $5 OR (threads.active_at = $5 AND threads.id < $6)) \
             AND threads.folded_title LIKE $7 ESCAPE '!' \
             ORDER BY threads.active_at DESC, threads.id DESC LIMIT $8"
        )))
        .bind(access.workspace().to_string())
        .bind(access.user_text())
        .bind(access.api_key_text())
        .bind(access.manages())
        .bind(after.map_or(i64::MAX, |place| place.active_at.timestamp_millis()))
        .bind(after.map_or_else(String::new, |place| place.id.to_string()))
        .bind(pattern(part))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing threads"))?;
        rows.iter().map(read).collect()
    }

    /// The workspace that a thread belongs to: who may read it is asked next.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn workspace_of_thread(
        &self,
        id: ThreadId,
    ) -> Result<Option<WorkspaceId>, StoreError> {
        let row =
            sqlx::query("SELECT workspace_id FROM threads WHERE id = $1 AND deleted_at IS NULL")
                .bind(id.to_string())
                .fetch_optional(&self.pool)
                .await
                .map_err(statement("looking for a thread"))?;
        row.map(|row| row.word("workspace_id")).transpose()
    }

    /// Keeps events of a thread, numbered on from those that are kept. Gives the number of the last.
    ///
    /// # Errors
    /// When a statement fails; then none is kept.
    pub async fn tell(&self, id: ThreadId, bodies: &[ThreadEventBody]) -> Result<u64, StoreError> {
        let mut changes = self.begin().await?;
        let seq = changes.tell(id, bodies).await?;
        changes.commit().await?;
        Ok(seq)
    }
}

/// A title without what would break its line or change how the rest is read.
#[must_use]
pub fn plain_title(given: &str) -> String {
    let is_plain = |character: &char| !character.is_control() && !is_deceptive(*character);
    let plain = given
        .chars()
        .map(|one| if is_plain(&one) { one } else { ' ' });
    plain.collect::<String>().trim().to_owned()
}

/// A title as it is looked for: one may be typed in capital letters, or in another form of Unicode.
pub(crate) fn folded(title: &str) -> String {
    title.nfc().collect::<String>().to_lowercase()
}

/// What a folded title has to be like to hold a part, whatever marks of patterns the part has.
fn pattern(part: &str) -> String {
    let mut pattern = String::from("%");
    for character in folded(part).chars() {
        if matches!(character, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(character);
    }
    pattern.push('%');
    pattern
}

impl Transaction {
    /// Holds a thread's row: what is told, sent and saved in it from here on comes one after the
    /// other. A workspace that is to be held too is held first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn hold_thread(&mut self, id: ThreadId) -> Result<Option<Thread>, StoreError> {
        let select = "SELECT 1 FROM threads WHERE id = $1 FOR NO KEY UPDATE";
        self.hold(select, &id.to_string(), "holding a thread")
            .await?;
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE threads.id = $1 AND threads.deleted_at IS NULL"
        )))
        .bind(id.to_string())
        .fetch_optional(&mut *self.inner)
        .await
        .map_err(statement("reading a thread"))?;
        row.as_ref().map(read).transpose()
    }

    /// Makes a thread.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn create_thread(
        &mut self,
        access: &Access,
        new: &NewThread,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO threads (id, workspace_id, user_id, api_key_id, title, is_titled, \
             is_shared, created_at, active_at, folded_title) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8, $9)",
        )
        .bind(new.id.to_string())
        .bind(access.workspace().to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(access.api_key().map(|id| id.to_string()))
        .bind(new.title.as_deref().unwrap_or(UNTITLED).to_owned())
        .bind(i64::from(new.title.is_some()))
        .bind(i64::from(new.is_shared))
        .bind(now_ms())
        .bind(folded(new.title.as_deref().unwrap_or(UNTITLED)))
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("making a thread"))
    }

    /// Writes title and sharing of a thread back that was read at `thread.version`, and tells it.
    ///
    /// # Errors
    /// When somebody else changed it since.
    pub async fn update_thread(&mut self, thread: &Thread) -> Result<(), StoreError> {
        let done = sqlx::query(
            "UPDATE threads SET title = $2, is_titled = $3, is_shared = $4, folded_title = $6, \
             version = version + 1 WHERE id = $1 AND version = $5 AND deleted_at IS NULL",
        )
        .bind(thread.id.to_string())
        .bind(&thread.title)
        .bind(i64::from(thread.is_titled))
        .bind(i64::from(thread.is_shared))
        .bind(thread.version)
        .bind(folded(&thread.title))
        .execute(&mut *self.inner)
        .await
        .map_err(statement("changing a thread"))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Conflict { what: "the thread" });
        }
        let changed = ThreadEventBody::ThreadChanged {
            title: thread.title.clone(),
            is_shared: thread.is_shared,
        };
        self.tell(thread.id, &[changed]).await.map(|_| ())
    }

    /// Deletes a thread: from here on it is nobody's. Says whether it was there.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn delete_thread(&mut self, id: ThreadId) -> Result<bool, StoreError> {
        let done =
            sqlx::query("UPDATE threads SET deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL")
                .bind(id.to_string())
                .bind(now_ms())
                .execute(&mut *self.inner)
                .await
                .map_err(statement("deleting a thread"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Keeps events of a thread, numbered on from those that are kept: the thread's row is held
    /// meanwhile, so that numbers have no gap and whoever reads in their order misses none. Gives the
    /// number of the last.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn tell(
        &mut self,
        id: ThreadId,
        bodies: &[ThreadEventBody],
    ) -> Result<u64, StoreError> {
        let select = "SELECT 1 FROM threads WHERE id = $1 FOR NO KEY UPDATE";
        self.hold(select, &id.to_string(), "holding a thread")
            .await?;
        let row = sqlx::query(
            "UPDATE threads SET last_seq = last_seq + $2, active_at = $3 WHERE id = $1 \
             RETURNING last_seq",
        )
        .bind(id.to_string())
        .bind(i64::try_from(bodies.len()).unwrap_or(i64::MAX))
        .bind(now_ms())
        .fetch_one(&mut *self.inner)
        .await
        .map_err(statement("numbering events of a thread"))?;
        let last = row.number("last_seq")?;
        let first = last - i64::try_from(bodies.len()).unwrap_or(i64::MAX) + 1;
        for (seq, body) in (first..).zip(bodies) {
            sqlx::query(
                "INSERT INTO thread_events (thread_id, seq, at, body) VALUES ($1, $2, $3, $4)",
            )
            .bind(id.to_string())
            .bind(seq)
            .bind(now_ms())
            .bind(to_json("body", body)?)
            .execute(&mut *self.inner)
            .await
            .map_err(statement("keeping an event of a thread"))?;
        }
        Ok(u64::try_from(last).unwrap_or(0))
    }
}
