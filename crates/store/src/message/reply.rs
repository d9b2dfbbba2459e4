//! Replies: driven, stopped, kept while they run, and ended.

use chrono::Utc;
use glovebox_protocol::ids::{MessageId, ThreadId};
use glovebox_protocol::thread::{ReplyFailure, ReplyOutcome, ThreadEventBody};
use serde_json::Value;

use super::{Message, MessageState, read, undriven};
use crate::database::{Columns as _, Store, now_ms, statement, to_json};
use crate::error::StoreError;

impl Store {
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

    /// Notes that somebody asks for the end of what runs in a thread, and says what that is. Where a
    /// reply is named, nothing is asked of another one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn ask_to_stop(
        &self,
        thread: ThreadId,
        only: Option<MessageId>,
    ) -> Result<Option<MessageId>, StoreError> {
        let row = sqlx::query(
            "UPDATE messages SET stop_asked_at = COALESCE(stop_asked_at, $2) \
             WHERE thread_id = $1 AND state = 'running' AND ($3 = '' OR id = $3) RETURNING id",
        )
        .bind(thread.to_string())
        .bind(now_ms())
        .bind(only.map_or_else(String::new, |id| id.to_string()))
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
