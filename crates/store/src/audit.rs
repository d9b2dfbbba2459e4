//! Who changed what, when and from where. Entries are only ever added: the database refuses
//! everything else.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{AuditId, WorkspaceId};
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json, to_ms};
use crate::error::StoreError;
use crate::words::words;

words! {
    /// What kind of somebody acted.
    ActorKind {
        /// A person who is signed in.
        User = "user",
        /// A program with a key.
        ApiKey = "api_key",
        /// Somebody at the machine's command line.
        CommandLine = "command_line",
        /// Nobody is known: a sign-in that failed.
        Unknown = "unknown",
        /// The server by itself.
        System = "system",
    }
}

/// Who acted, and from where.
#[derive(Debug, Clone)]
pub struct Actor {
    /// What kind.
    pub kind: ActorKind,
    /// The id of user or key.
    pub id: Option<String>,
    /// What people call it.
    pub name: String,
    /// The network address.
    pub address: String,
    /// The request by which it acted.
    pub request_id: String,
}

impl Actor {
    /// The server by itself.
    #[must_use]
    pub fn system() -> Self {
        Self {
            kind: ActorKind::System,
            id: None,
            name: "glovebox".into(),
            address: String::new(),
            request_id: String::new(),
        }
    }

    /// Somebody at the command line of this machine.
    #[must_use]
    pub fn command_line(name: &str) -> Self {
        Self {
            kind: ActorKind::CommandLine,
            name: name.into(),
            ..Self::system()
        }
    }
}

/// What is to be written down.
#[derive(Debug, Clone)]
pub struct Entry<'a> {
    /// Such as `workspace.update`.
    pub action: &'a str,
    /// The kind of the object: `workspace`, …
    pub object_kind: &'a str,
    /// Its id.
    pub object_id: Option<String>,
    /// What people call it.
    pub object: &'a str,
    /// The workspace that it belongs to.
    pub workspace: Option<WorkspaceId>,
    /// The names of the fields that changed; never their values.
    pub fields: &'a [&'a str],
}

/// One entry of the log.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Its id; sorts by time.
    pub id: AuditId,
    /// When.
    pub at: DateTime<Utc>,
    /// Who.
    pub actor: Actor,
    /// What was done.
    pub action: String,
    /// To what kind of object.
    pub object_kind: String,
    /// To which.
    pub object_id: Option<String>,
    /// What people call it.
    pub object: String,
    /// The workspace that it belongs to.
    pub workspace: Option<WorkspaceId>,
    /// The names of the fields that changed.
    pub fields: Vec<String>,
}

/// Which entries are asked for. What is `None` does not narrow.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// The beginning of the action, such as `profile.`.
    pub action: Option<String>,
    /// A part of the actor's name.
    pub actor: Option<String>,
    /// Not before.
    pub since: Option<DateTime<Utc>>,
    /// Before.
    pub until: Option<DateTime<Utc>>,
    /// Older than this entry.
    pub before: Option<AuditId>,
}

const COLUMNS: &str = "id, at, actor_kind, actor_id, actor, address, action, object_kind, \
     object_id, object, workspace_id, fields, request_id";

fn read(row: &AnyRow) -> Result<AuditEntry, StoreError> {
    Ok(AuditEntry {
        id: row.word("id")?,
        at: row.time("at")?,
        actor: Actor {
            kind: row.word("actor_kind")?,
            id: row.maybe_text("actor_id")?,
            name: row.text("actor")?,
            address: row.text("address")?,
            request_id: row.text("request_id")?,
        },
        action: row.text("action")?,
        object_kind: row.text("object_kind")?,
        object_id: row.maybe_text("object_id")?,
        object: row.text("object")?,
        workspace: row.maybe_word("workspace_id")?,
        fields: row.document("fields")?,
    })
}

impl Store {
    /// Entries, the newest first, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM audit \
             WHERE SUBSTR(action, 1, LENGTH($1)) = $1 \
             AND ($2 = '' OR LOWER(actor) LIKE '%' || $2 || '%' ESCAPE '!') \
             AND at >= $3 AND at < $4 AND id < $5 ORDER BY id DESC LIMIT $6"
        )))
        .bind(filter.action.clone().unwrap_or_default())
        .bind(filter.actor.as_deref().map_or_else(String::new, like))
        .bind(filter.since.map_or(0, to_ms))
        .bind(filter.until.map_or(i64::MAX, to_ms))
        // Every id is below this.
        .bind(
            filter
                .before
                .map_or_else(|| "g".into(), |id| id.to_string()),
        )
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading the audit log"))?;
        rows.iter().map(read).collect()
    }
}

/// A text as a pattern that finds it and nothing else.
fn like(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for c in text.to_lowercase().chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern
}

impl Transaction {
    /// Writes down what these changes do: with them, or not at all.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn record(&mut self, actor: &Actor, entry: Entry<'_>) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO audit (id, at, actor_kind, actor_id, actor, address, action, \
             object_kind, object_id, object, workspace_id, fields, request_id) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        )
        .bind(AuditId::new().to_string())
        .bind(now_ms())
        .bind(actor.kind.as_str())
        .bind(actor.id.clone())
        .bind(&actor.name)
        .bind(&actor.address)
        .bind(entry.action)
        .bind(entry.object_kind)
        .bind(entry.object_id)
        .bind(entry.object)
        .bind(entry.workspace.map(|id| id.to_string()))
        .bind(to_json("fields", &entry.fields)?)
        .bind(&actor.request_id)
        .execute(&mut *self.inner)
        .await
        .map_err(statement("writing into the audit log"))?;
        Ok(())
    }
}
