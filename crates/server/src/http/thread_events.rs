//! The stream of what happens in a thread.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use futures_util::Stream;
use glovebox_protocol::ids::ThreadId;
use glovebox_protocol::thread::ThreadEvent;
use glovebox_store::{Access, KeyScope, StoreError};
use http::HeaderMap;
use serde_json::Value;
use tokio::time::Instant;

use super::answers::Errors;
use super::caller::Caller;
use super::error::ApiError;
use super::executions::{EventsQuery, HEARTBEAT, READ, last_event_id};
use super::streams;
use super::threads::thread_id;
use crate::app::App;
use crate::app::streams::OpenStream;
use crate::chat::live::Following;
use crate::failure::chain;

/// How often is looked for events that another process stored.
const GLANCE: Duration = Duration::from_millis(500);

/// What to do without a stream.
const INSTEAD: &str =
    "what happens in a thread can also be asked for again and again at its `history`, with `after`";

/// How long rights may have changed before a stream on which nothing happens notices: nothing is
/// told without looking at them.
const RIGHTS_EVERY: Duration = Duration::from_secs(5);

/// Streams the events of a thread: those that are stored and those that come. It stays open. Each is
/// `{seq, type, at, data}`, and its type is the event's name. A client that was cut off goes on
/// with `after`, or with the header `Last-Event-ID`. A caller may have so many streams open at once, and so
/// may all callers of a server process together: one more is refused with 429 and `too_many_streams`.
#[utoipa::path(get, path = "/api/v1/threads/{thread}/events", tag = "threads",
    params(("thread" = String, Path, description = "Its id"), EventsQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Server-sent events", body = String,
        content_type = "text/event-stream"), Errors))]
pub(crate) async fn events(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, Infallible>>>, ApiError> {
    let id = thread_id(&thread)?;
    let (access, _) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsRead)
        .await?;
    let open = streams::open(&app, &caller, INSTEAD)?;
    let reader = Reader {
        _open: open,
        news: app.live().follow(id),
        after: query.after.or_else(|| last_event_id(&headers)).unwrap_or(0),
        waiting: Vec::new().into_iter(),
        app,
        access,
        caller,
        thread: id,
        looked_at: Instant::now(),
    };
    let stream = futures_util::stream::unfold(reader, |mut reader| async move {
        let event = reader.next().await?;
        Some((Ok(event), reader))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// A reader of one thread's events.
struct Reader {
    app: App,
    access: Access,
    caller: Caller,
    thread: ThreadId,
    after: u64,
    waiting: std::vec::IntoIter<ThreadEvent>,
    news: Following,
    /// Counts it for as long as it is there.
    _open: OpenStream,
    /// When its rights were last looked at.
    looked_at: Instant,
}

impl Reader {
    /// The next event; nothing once the thread may not be read any more, or the server stops.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.waiting.next() {
                self.after = event.seq;
                return written(&event);
            }
            match self.read().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => {
                    tracing::warn!(thread = %self.thread, error = chain(&error), "streaming events");
                    return None;
                }
            }
        }
    }

    /// Waits until there are events. Says whether there may be more: the server may stop, and rights
    /// change while a stream is open, so that it tells nothing that whoever listens may not know.
    async fn read(&mut self) -> Result<bool, StoreError> {
        let (mut is_woken, mut is_over) = (false, false);
        loop {
            let store = self.app.store();
            let events = store.thread_events(self.thread, self.after, READ).await?;
            let is_due = is_woken || self.looked_at.elapsed() > RIGHTS_EVERY;
            if (is_due || !events.is_empty()) && !self.may_read().await? {
                return Ok(false);
            }
            if !events.is_empty() {
                self.waiting = events.into_iter();
                return Ok(true);
            }
            if is_over {
                return Ok(false);
            }
            let glance = tokio::time::sleep_until(Instant::now() + GLANCE);
            is_woken = tokio::select! {
                // Something happened here: where it is no event, the thread was deleted.
                () = self.news.after(self.after) => true,
                () = glance => false,
                // What was told last may not have been read yet.
                () = self.app.stopping().until_over() => {
                    is_over = true;
                    true
                }
            };
        }
    }

    async fn may_read(&mut self) -> Result<bool, StoreError> {
        let store = self.app.store();
        if let Caller::Session(signed_in) = &self.caller
            && !store.is_session(signed_in.session.id).await?
        {
            return Ok(false);
        }
        let Some(access) = store.present_access(&self.access).await? else {
            return Ok(false);
        };
        let may_read = access.has_scope(KeyScope::ThreadsRead)
            && store.thread_of(&access, self.thread).await?.is_some();
        self.access = access;
        self.looked_at = Instant::now();
        Ok(may_read)
    }
}

/// An event as it is sent.
fn written(event: &ThreadEvent) -> Option<SseEvent> {
    let document = serde_json::to_value(event).ok()?;
    let name = document.get("type").and_then(Value::as_str)?.to_owned();
    let sent = SseEvent::default().id(event.seq.to_string()).event(name);
    Some(sent.data(document.to_string()))
}
