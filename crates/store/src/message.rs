//! Messages of threads: what somebody sent, and the replies to it.

mod reply;
mod sending;

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ApiKeyId, AttachmentId, MessageId, ThreadId, UserId};
use glovebox_protocol::thread::MessageKind;
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, statement};
use crate::error::StoreError;
use crate::words::words;

/// How many bytes of messages are read at once: far more than a model reads.
const READ_BYTES: i64 = 4 << 20;

words! {
    /// Whose words a message has.
    MessageRole {
        /// Somebody sent it.
        User = "user",
        /// It is a reply.
        Assistant = "assistant",
    }
}

words! {
    /// How far a message is.
    MessageState {
        /// Somebody sent it.
        Sent = "sent",
        /// A reply on its way.
        Running = "running",
        /// A reply that said all it had to say.
        Done = "done",
        /// A reply that somebody stopped.
        Stopped = "stopped",
        /// A reply that could not go on.
        Failed = "failed",
    }
}

/// One message of a thread.
#[derive(Debug, Clone)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// The thread.
    pub thread_id: ThreadId,
    /// Who sent it, or asked for the reply; `None` for a service.
    pub user_id: Option<UserId>,
    /// The key with which it was sent or asked for.
    pub api_key_id: Option<ApiKeyId>,
    /// What people call whoever sent it.
    pub author: String,
    /// What a reply answers.
    pub reply_to: Option<MessageId>,
    /// Whether somebody sent it or it is a reply.
    pub role: MessageRole,
    /// Words or code; of a reply, whether it answers words or code.
    pub kind: MessageKind,
    /// The words or the code.
    pub body: String,
    /// Of a reply: what the model said and was told on the way.
    pub turns: Value,
    /// How far it is.
    pub state: MessageState,
    /// When it was sent or begun.
    pub created_at: DateTime<Utc>,
    /// When somebody asked for its end.
    pub stop_asked_at: Option<DateTime<Utc>>,
}

/// What a new message is made of.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Words or code.
    pub kind: MessageKind,
    /// The words or the code.
    pub text: String,
    /// What was uploaded for it, in the order in which it is shown.
    pub attachments: Vec<AttachmentId>,
    /// What the caller calls this request, so that it may be repeated.
    pub idempotency_key: Option<String>,
    /// A hash of what was asked for.
    pub request_hash: String,
}

/// What became of a wish to send a message, or to try a reply again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlacedMessage {
    /// It was sent, and the reply is to be driven.
    New {
        /// The message.
        message: MessageId,
        /// The reply to it.
        reply: MessageId,
        /// The number of the newest event of the thread.
        last_seq: u64,
    },
    /// The same was sent before.
    Repeated {
        /// The message.
        message: MessageId,
        /// The first reply to it.
        reply: MessageId,
    },
    /// Something else was sent under the same key.
    KeyIsTaken,
    /// A reply is on its way.
    Busy(MessageId),
    /// There is no such file that could be sent.
    NoAttachment(AttachmentId),
    /// It is not the newest message that somebody sent.
    NotNewest,
}

const COLUMNS: &str = "messages.id, messages.thread_id, messages.user_id, messages.api_key_id, \
     COALESCE(users.name, api_keys.name, '') AS author, messages.reply_to, messages.role, \
     messages.kind, messages.body, messages.turns, messages.state, messages.created_at, \
     messages.stop_asked_at";

const FROM: &str = "messages LEFT JOIN users ON users.id = messages.user_id \
     LEFT JOIN api_keys ON api_keys.id = messages.api_key_id";

/// Replies that run on paper only, before a time.
pub(crate) fn undriven() -> String {
    format!(
        "SELECT {COLUMNS} FROM {FROM} WHERE messages.state = 'running' \
         AND messages.driven_until < $1 ORDER BY messages.id"
    )
}

fn read(row: &AnyRow) -> Result<Message, StoreError> {
    Ok(Message {
        id: row.word("id")?,
        thread_id: row.word("thread_id")?,
        user_id: row.maybe_word("user_id")?,
        api_key_id: row.maybe_word("api_key_id")?,
        author: row.text("author")?,
        reply_to: row.maybe_word("reply_to")?,
        role: row.word("role")?,
        kind: row.word("kind")?,
        body: row.text("body")?,
        turns: row.document("turns")?,
        state: row.word("state")?,
        created_at: row.time("created_at")?,
        stop_asked_at: row.maybe_time("stop_asked_at")?,
    })
}

impl Store {
    /// The message with this id, in this thread.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn message(
        &self,
        thread: ThreadId,
        id: MessageId,
    ) -> Result<Option<Message>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE messages.id = $1 AND messages.thread_id = $2"
        )))
        .bind(id.to_string())
        .bind(thread.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a message"))?;
        row.as_ref().map(read).transpose()
    }

    /// The newest messages of a thread, the oldest of them first, in the order of its events: at most
    /// `limit`, and no more than about 4 MiB with what is kept beside them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn messages(&self, thread: ThreadId, limit: u32) -> Result<Vec<Message>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE messages.thread_id = $1 \
             AND messages.seq >= (SELECT MIN(summed.seq) FROM (SELECT sized.seq, \
             SUM(sized.bytes) OVER (ORDER BY sized.seq DESC) - sized.bytes AS after FROM \
             (SELECT seq, octet_length(body) + octet_length(turns) AS bytes FROM messages \
             WHERE thread_id = $1 ORDER BY seq DESC LIMIT $2) AS sized) AS summed \
             WHERE summed.after < $3) ORDER BY messages.seq DESC"
        )))
        .bind(thread.to_string())
        .bind(i64::from(limit))
        .bind(READ_BYTES)
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading messages"))?;
        rows.iter().rev().map(read).collect()
    }
}
