//! What has happened in a thread, read on from some event, as a stream does, or page by page from its
//! end, as people do who come back to it.

use glovebox_protocol::ids::ThreadId;
use glovebox_protocol::thread::ThreadEvent;
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, statement};
use crate::error::StoreError;

/// How many bytes of events are read at once: whoever reads holds them for as long as it takes to
/// tell them, and one event may be a picture.
const READ_BYTES: i64 = 4 << 20;

/// How the events begin that pages begin with: what answers a message follows it.
const MESSAGE: &str = r#"{"type":"message_sent"%"#;

impl Store {
    /// Events of a thread after number `after`: at least one where there is one, at most `limit`,
    /// and no more than about 4 MiB with the first of them.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn thread_events(
        &self,
        id: ThreadId,
        after: u64,
        limit: u32,
    ) -> Result<Vec<ThreadEvent>, StoreError> {
        let rows = sqlx::query(
            "SELECT seq, at, body FROM thread_events WHERE thread_id = $1 AND seq > $2 \
             AND seq <= (SELECT MAX(summed.seq) FROM (SELECT sized.seq, \
             SUM(sized.bytes) OVER (ORDER BY sized.seq) - sized.bytes AS ahead FROM \
             (SELECT seq, octet_length(body) AS bytes FROM thread_events \
             WHERE thread_id = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS sized) AS summed \
             WHERE summed.ahead < $4) ORDER BY seq",
        )
        .bind(id.to_string())
        .bind(i64::try_from(after).unwrap_or(i64::MAX))
        .bind(i64::from(limit))
        .bind(READ_BYTES)
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading events of a thread"))?;
        rows.iter().map(read_event).collect()
    }

    /// The last events of a thread before number `before`, or of all, in their order: at least one where
    /// there is one, at most `limit`, and no more than about 4 MiB with the first of them. They begin
    /// with a message where one of them is one; only of an exchange that is longer than a page they begin
    /// in its middle.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn thread_events_before(
        &self,
        id: ThreadId,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<ThreadEvent>, StoreError> {
        let before = before.map_or(i64::MAX, |seq| i64::try_from(seq).unwrap_or(i64::MAX));
        let row = sqlx::query(
            "SELECT COALESCE(MIN(summed.seq), 0) AS first FROM (SELECT sized.seq, \
             SUM(sized.bytes) OVER (ORDER BY sized.seq DESC) - sized.bytes AS behind FROM \
             (SELECT seq, octet_length(body) AS bytes FROM thread_events \
             WHERE thread_id = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3) AS sized) AS summed \
             WHERE summed.behind < $4",
        )
        .bind(id.to_string())
        .bind(before)
        .bind(i64::from(limit))
        .bind(READ_BYTES)
        .fetch_one(&self.pool)
        .await
        .map_err(statement("looking how far a page of a thread goes"))?;
        let first = row.number("first")?;
        let rows = sqlx::query(
            "SELECT seq, at, body FROM thread_events WHERE thread_id = $1 AND seq < $2 \
             AND seq >= (SELECT COALESCE(MIN(told.seq), $3) FROM thread_events AS told \
             WHERE told.thread_id = $1 AND told.seq < $2 AND told.seq >= $3 \
             AND $3 > 1 AND told.body LIKE $4) ORDER BY seq",
        )
        .bind(id.to_string())
        .bind(before)
        .bind(first)
        .bind(MESSAGE)
        .fetch_all(&self.pool)
        .await
        .map_err(statement("reading a page of a thread"))?;
        rows.iter().map(read_event).collect()
    }
}

/// An event of a thread.
fn read_event(row: &AnyRow) -> Result<ThreadEvent, StoreError> {
    Ok(ThreadEvent {
        seq: u64::try_from(row.number("seq")?).unwrap_or(0),
        at: row.time("at")?,
        body: row.document("body")?,
    })
}
