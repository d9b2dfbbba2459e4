//! Sending a message into a thread, or trying a reply again: what is placed together with the reply
//! that begins.

use glovebox_protocol::ids::MessageId;
use glovebox_protocol::thread::{Author, MessageKind, SentFile, ThreadEventBody};

use super::{NewMessage, PlacedMessage};
use crate::access::Access;
use crate::database::{Columns as _, Transaction, now_ms, statement};
use crate::error::StoreError;
use crate::thread::{Thread, folded, plain_title};

/// For how long a new reply counts as driven before anybody has marked it, in milliseconds.
const FIRST_DRIVE_MS: i64 = 30_000;

/// The number of the event that is told next in the thread of `$2`, whose row is held.
const NEXT: &str = "(SELECT threads.last_seq + 1 FROM threads WHERE threads.id = $2)";

/// How much of a first message becomes the title, in characters.
const TITLE_CHARACTERS: usize = 60;

/// A title made from what was sent first: its first line that says something.
fn title(text: &str, files: &[SentFile]) -> Option<String> {
    let mut lines = text.lines().map(plain_title);
    let line = lines.find(|line| !line.is_empty());
    let line = line.or(files.first().map(|file| file.name.clone()))?;
    let is_long = line.chars().count() > TITLE_CHARACTERS;
    let mut title: String = line.chars().take(TITLE_CHARACTERS).collect();
    if is_long {
        title.truncate(title.trim_end().len());
        title.push('…');
    }
    Some(title)
}

/// The key of a message as it is kept: a key is its author's, and another one may choose the same.
fn own_key(access: &Access, new: &NewMessage) -> Option<String> {
    let key = new.idempotency_key.as_ref()?;
    let user = access.user().map(|id| id.to_string());
    let author = user.or_else(|| access.api_key().map(|id| id.to_string()));
    Some(format!("{} {key}", author.unwrap_or_default()))
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
        if let Some(before) = self.same_request(access, thread, new).await? {
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
             ORDER BY seq DESC LIMIT 1",
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
        access: &Access,
        thread: &Thread,
        new: &NewMessage,
    ) -> Result<Option<PlacedMessage>, StoreError> {
        let Some(key) = own_key(access, new) else {
            return Ok(None);
        };
        let row = sqlx::query(
            "SELECT messages.id, messages.request_hash, replies.id AS reply FROM messages \
             JOIN messages replies ON replies.reply_to = messages.id \
             WHERE messages.thread_id = $1 AND messages.idempotency_key = $2 \
             ORDER BY replies.seq LIMIT 1",
        )
        .bind(thread.id.to_string())
        .bind(key)
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
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO messages (id, thread_id, user_id, api_key_id, role, kind, body, turns, \
             state, idempotency_key, request_hash, created_at, driven_until, seq) \
             VALUES ($1, $2, $3, $4, 'user', $5, $6, 'null', 'sent', $7, $8, $9, 0, {NEXT})"
        )))
        .bind(id.to_string())
        .bind(thread.id.to_string())
        .bind(access.user().map(|id| id.to_string()))
        .bind(access.api_key().map(|id| id.to_string()))
        .bind(new.kind.as_str())
        .bind(&new.text)
        .bind(own_key(access, new))
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
        sqlx::query(sqlx::AssertSqlSafe(format!(
            "INSERT INTO messages (id, thread_id, user_id, api_key_id, reply_to, role, kind, \
             body, turns, state, request_hash, created_at, driven_until, seq) \
             VALUES ($1, $2, $3, $4, $5, 'assistant', $6, '', 'null', 'running', '', $7, $8, {NEXT})"
        )))
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
        sqlx::query("UPDATE threads SET title = $2, folded_title = $3 WHERE id = $1")
            .bind(thread.id.to_string())
            .bind(title.to_owned())
            .bind(folded(title))
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
        let marked = title("\u{202e}\u{200b}\na\tb\u{202e}c", &[]);
        assert_eq!(marked.as_deref(), Some("a b c"));
        let long = "word ".repeat(40);
        let made = title(&long, &[]).unwrap();
        assert!(made.ends_with("word…"), "{made}");
        assert!(made.chars().count() <= TITLE_CHARACTERS + 1);
    }
}
