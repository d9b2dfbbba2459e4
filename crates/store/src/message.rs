//! Messages of threads: what somebody sent, and the replies to it.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{ApiKeyId, AttachmentId, MessageId, ThreadId, UserId};
use glovebox_protocol::thread::{
    Author, MessageKind, ReplyFailure, ReplyOutcome, SentFile, ThreadEventBody,
};
use serde_json::Value;
use sqlx::any::AnyRow;

use crate::access::Access;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json};
use crate::error::StoreError;
use crate::thread::Thread;
use crate::words::words;

/// For how long a new reply counts as driven before anybody has marked it, in milliseconds.
const FIRST_DRIVE_MS: i64 = 30_000;

/// How much of a first message becomes the title, in characters.
const TITLE_CHARACTERS: usize = 60;

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

/// A title made from what was sent first: its first line that says something.
fn title(text: &str, files: &[SentFile]) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.or(files.first().map(|file| file.name.as_str()))?;
    let is_long = line.chars().count() > TITLE_CHARACTERS;
    let mut title: String = line.chars().take(TITLE_CHARACTERS).collect();
    if is_long {
        title.truncate(title.trim_end().len());
        title.push('…');
    }
    Some(title)
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

    /// The newest messages of a thread, the oldest of them first, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn messages(&self, thread: ThreadId, limit: u32) -> Result<Vec<Message>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM {FROM} WHERE messages.thread_id = $1 \
             ORDER BY messages.id DESC LIMIT $2"
        )))
        .bind(thread.to_string())
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading messages"))?;
        rows.iter().rev().map(read).collect()
    }

    /// Replies that run on paper only: nobody drives them any more.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn undriven_replies(&self) -> Result<Vec<Message>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(undriven()))
            .bind(now_ms())
            .fetch_all(&self.pool)
            .await
            .map_err(statement("looking for replies that nobody drives"))?;
        rows.iter().map(read).collect()
    }

    /// Somebody drives a reply for some more seconds.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn mark_reply_driven(&self, id: MessageId, seconds: i64) -> Result<(), StoreError> {
        sqlx::query("UPDATE messages SET driven_until = $2 WHERE id = $1 AND state = 'running'")
            .bind(id.to_string())
            .bind(now_ms() + seconds * 1000)
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("marking a reply as driven"))
    }

    /// Notes that somebody asks for the end of what runs in a thread, and says what that is.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn ask_to_stop(&self, thread: ThreadId) -> Result<Option<MessageId>, StoreError> {
        let row = sqlx::query(
            "UPDATE messages SET stop_asked_at = COALESCE(stop_asked_at, $2) \
             WHERE thread_id = $1 AND state = 'running' RETURNING id",
        )
        .bind(thread.to_string())
        .bind(now_ms())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("asking for the end of a reply"))?;
        row.map(|row| row.word("id")).transpose()
    }

    /// Whether a reply is to go on: it runs, and nobody has asked for its end.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn is_to_go_on(&self, reply: MessageId) -> Result<bool, StoreError> {
        let row = sqlx::query(
            "SELECT 1 AS one FROM messages WHERE id = $1 AND state = 'running' \
             AND stop_asked_at IS NULL",
        )
        .bind(reply.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking whether a reply is to go on"))?;
        Ok(row.is_some())
    }

    /// Keeps what a reply has said so far, and what its model was told on the way.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn keep_reply(
        &self,
        id: MessageId,
        turns: &Value,
        text: &str,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE messages SET body = $2, turns = $3 WHERE id = $1")
            .bind(id.to_string())
            .bind(text.to_owned())
            .bind(to_json("turns", turns)?)
            .execute(&self.pool)
            .await
            .map(|_| ())
            .map_err(statement("keeping a reply"))
    }

    /// Ends a reply, once, and tells it after some last events. Gives the number of the newest event;
    /// nothing where the reply had ended before.
    ///
    /// # Errors
    /// When a statement fails; then nothing is kept.
    pub async fn end_reply(
        &self,
        reply: &Message,
        outcome: ReplyOutcome,
        error: Option<ReplyFailure>,
        steps: u32,
    ) -> Result<Option<u64>, StoreError> {
        let state = match outcome {
            ReplyOutcome::Done => MessageState::Done,
            ReplyOutcome::Stopped => MessageState::Stopped,
            ReplyOutcome::Failed => MessageState::Failed,
        };
        let mut changes = self.begin().await?;
        // The thread first, as everybody does.
        let select = "SELECT 1 FROM threads WHERE id = $1 FOR NO KEY UPDATE";
        let thread = reply.thread_id;
        changes
            .hold(select, &thread.to_string(), "holding a thread")
            .await?;
        let done = sqlx::query(
            "UPDATE messages SET state = $2, ended_at = $3 WHERE id = $1 AND state = 'running'",
        )
        .bind(reply.id.to_string())
        .bind(state.as_str())
        .bind(now_ms())
        .execute(&mut *changes.inner)
        .await
        .map_err(statement("ending a reply"))?;
        if done.rows_affected() == 0 {
            return Ok(None);
        }
        let took = Utc::now() - reply.created_at;
        let ended = ThreadEventBody::ReplyEnded {
            reply: reply.id,
            outcome,
            error,
            steps,
            duration_ms: u64::try_from(took.num_milliseconds()).unwrap_or(0),
        };
        let seq = changes.tell(thread, &[ended]).await?;
        changes.commit().await?;
        Ok(Some(seq))
    }
}

impl Transaction {
    /// Sends a message into a thread that is [held](Transaction::hold_thread), and begins the reply
    /// to it.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn place_message(
        &mut self,
        access: &Access,
        thread: &Thread,
        new: &NewMessage,
    ) -> Result<PlacedMessage, StoreError> {
        if let Some(before) = self.same_request(thread, new).await? {
            return Ok(before);
        }
        if let Some(reply) = thread.running_reply {
            return Ok(PlacedMessage::Busy(reply));
        }
        let message = MessageId::new();
        self.insert_message(access, thread, message, new).await?;
        let sent = self.send_attachments(access, thread.id, message, &new.attachments);
        let files = match sent.await? {
            Ok(files) => files,
            Err(unknown) => return Ok(PlacedMessage::NoAttachment(unknown)),
        };
        let named = title(&new.text, &files)
            .filter(|_| !thread.is_titled && thread.title == crate::thread::UNTITLED);
        let sent = ThreadEventBody::MessageSent {
            message,
            author: self.author(access).await?,
            kind: new.kind,
            text: new.text.clone(),
            attachments: files,
        };
        self.tell(thread.id, &[sent]).await?;
        if let Some(title) = named {
            self.name_thread(thread, &title).await?;
        }
        let (reply, last_seq) = self.begin_reply(access, thread, message, new.kind).await?;
        Ok(PlacedMessage::New {
            message,
            reply,
            last_seq,
        })
    }

    /// Begins another reply to the newest message of a thread that is held.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn place_retry(
        &mut self,
        access: &Access,
        thread: &Thread,
        message: MessageId,
    ) -> Result<PlacedMessage, StoreError> {
        if let Some(reply) = thread.running_reply {
            return Ok(PlacedMessage::Busy(reply));
        }
        let row = sqlx::query(
            "SELECT id, kind FROM messages WHERE thread_id = $1 AND role = 'user' \
             ORDER BY id DESC LIMIT 1",
        )
        .bind(thread.id.to_string())
        .fetch_optional(&mut *self.inner)
        .await
        .map_err(statement("looking for the newest message"))?;
        let Some(row) = row else {
            return Ok(PlacedMessage::NotNewest);
        };
        let newest: MessageId = row.word("id")?;
        if newest != message {
            return Ok(PlacedMessage::NotNewest);
        }
        let kind = row.word("kind")?;
        let (reply, last_seq) = self.begin_reply(access, thread, message, kind).await?;
        Ok(PlacedMessage::New {
            message,
            reply,
            last_seq,
        })
    }

    /// What was sent before under the same key.
    async fn same_request(
        &mut self,
        thread: &Thread,
        new: &NewMessage,
    ) -> Result<Option<PlacedMessage>, StoreError> {
        let Some(key) = &new.idempotency_key else {
            return Ok(None);
        };
        let row = sqlx::query(
            "SELECT messages.id, messages.request_hash, MIN(replies.id) AS reply FROM messages \
             JOIN messages replies ON replies.reply_to = messages.id \
             WHERE messages.thread_id = $1 AND messages.idempotency_key = $2 \
             GROUP BY messages.id, messages.request_hash",
        )
        .bind(thread.id.to_string())
        .bind(key.clone())
        .fetch_optional(&mut *self.inner)
        .await
        .map_err(statement("looking for the same message"))?;
        let Some(row) = row else { return Ok(None) };
        if row.text("request_hash")? != new.request_hash {
            return Ok(Some(PlacedMessage::KeyIsTaken));
        }
        Ok(Some(PlacedMessage::Repeated {
            message: row.word("id")?,
            reply: row.word("reply")?,
        }))
    }

    async fn insert_message(
        &mut self,
        access: &Access,
        thread: &Thread,
        id: MessageId,
        new: &NewMessage,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO messages (id, thread_id, user_id, api_key_id, role, kind, body, turns, \
             state, idempotency_key, request_hash, created_at, driven_until) \
             VALUES ($1, $2, $3, $4, 'user', $5, $6, 'null', 'sent', $7, $8, $9, 0)",
        )
        .bind(id.to_string())
        .bind(thread.id.to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(access.api_key().map(|id| id.to_string()))
        .bind(new.kind.as_str())
        .bind(&new.text)
        .bind(new.idempotency_key.clone())
        .bind(&new.request_hash)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map(|_| ())
        .map_err(statement("keeping a message"))
    }

    /// Begins a reply, for somebody, and tells it.
    async fn begin_reply(
        &mut self,
        access: &Access,
        thread: &Thread,
        reply_to: MessageId,
        kind: MessageKind,
    ) -> Result<(MessageId, u64), StoreError> {
        let reply = MessageId::new();
        sqlx::query(
            "INSERT INTO messages (id, thread_id, user_id, api_key_id, reply_to, role, kind, \
             body, turns, state, request_hash, created_at, driven_until) \
             VALUES ($1, $2, $3, $4, $5, 'assistant', $6, '', 'null', 'running', '', $7, $8)",
        )
        .bind(reply.to_string())
        .bind(thread.id.to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(access.api_key().map(|id| id.to_string()))
        .bind(reply_to.to_string())
        .bind(kind.as_str())
        .bind(now_ms())
        .bind(now_ms() + FIRST_DRIVE_MS)
        .execute(&mut *self.inner)
        .await
        .map_err(statement("beginning a reply"))?;
        let started = ThreadEventBody::ReplyStarted { reply, reply_to };
        let last_seq = self.tell(thread.id, &[started]).await?;
        Ok((reply, last_seq))
    }

    /// Gives a thread the title that its first message makes. Its version stays: whoever gives it
    /// another title meanwhile means that one.
    async fn name_thread(&mut self, thread: &Thread, title: &str) -> Result<(), StoreError> {
        sqlx::query("UPDATE threads SET title = $2 WHERE id = $1")
            .bind(thread.id.to_string())
            .bind(title.to_owned())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("naming a thread"))?;
        let changed = ThreadEventBody::ThreadChanged {
            title: title.to_owned(),
            is_shared: thread.is_shared,
        };
        self.tell(thread.id, &[changed]).await.map(|_| ())
    }

    /// Whoever sends something, as others are shown it.
    async fn author(&mut self, access: &Access) -> Result<Author, StoreError> {
        let Some(user) = access.user() else {
            return Ok(Author {
                user: None,
                name: access.name().to_owned(),
            });
        };
        let row = sqlx::query("SELECT name FROM users WHERE id = $1")
            .bind(user.to_string())
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("reading a name"))?;
        Ok(Author {
            user: Some(user),
            name: row.text("name")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_the_first_line_that_says_something() {
        assert_eq!(title("\n  Hello \nmore", &[]).as_deref(), Some("Hello"));
        assert_eq!(title("  \n", &[]), None);
        let long = "word ".repeat(40);
        let made = title(&long, &[]).unwrap();
        assert!(made.ends_with("word…"), "{made}");
        assert!(made.chars().count() <= TITLE_CHARACTERS + 1);
    }
}
