//! Executions: code that runs in a sandbox, and the stream of what happens.

use std::convert::Infallible;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use futures_util::Stream;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::process::Cancel;
use glovebox_store::ExecutionState;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::Instant;
use utoipa::{IntoParams, ToSchema};

use super::answers::Errors;
use super::body::JsonObject;
use super::caller::Caller;
use super::error::ApiError;
use super::sandboxes::{RUN, sandbox_id};
use super::streams;
use super::views::ExecutionView;
use crate::app::App;
use crate::app::executions::{ExecutionError, Wish};
use crate::app::streams::OpenStream;
use crate::failure::chain;

/// How often a stream without anything to say shows that it is there.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// How often is looked for events of an execution that another process drives.
const GLANCE: Duration = Duration::from_millis(250);

/// What to do without a stream.
const INSTEAD: &str =
    "whether it has ended, and how, can also be asked for again and again at the execution";

/// How many events are read at once.
pub(super) const READ: u32 = 500;

/// Longest name of a request that may be repeated, in bytes.
const MAX_KEY: usize = 255;

fn execution_id(text: &str) -> Result<ExecutionId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("execution"))
}

/// Code to be run.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateExecution {
    /// As it would be typed into a cell of a notebook.
    code: String,
    /// After how many seconds it is interrupted; the profile's where nobody says.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 600)]
    time_limit_seconds: Option<u32>,
}

/// An execution that was asked for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedExecution {
    id: String,
    sandbox_id: String,
}

/// Runs code in a sandbox. Answers at once; what happens is told by the events. One execution
/// runs at a time. With the header `Idempotency-Key` the request can be repeated: the same code
/// under the same key runs once.
#[utoipa::path(post, path = "/api/v1/sandboxes/{sandbox}/executions", tag = "executions",
    params(("sandbox" = String, Path, description = "Its id"),
        ("Idempotency-Key" = Option<String>, Header, description = "Names the request")),
    request_body = CreateExecution,
    security(("api_key" = []), ("session" = [])),
    responses((status = 202, body = AcceptedExecution), Errors))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Path(sandbox): Path<String>,
    headers: HeaderMap,
    Json(JsonObject(body)): Json<JsonObject<CreateExecution>>,
) -> Result<(StatusCode, Json<AcceptedExecution>), ApiError> {
    let sandbox = sandbox_id(&sandbox)?;
    let access = caller.access_to(&app, sandbox, None).await?;
    let wish = Wish {
        code: body.code,
        time_limit_seconds: body.time_limit_seconds,
        idempotency_key: idempotency_key(&headers)?,
    };
    let id = app.execute(&access, sandbox, wish).await?;
    let view = AcceptedExecution {
        id: id.to_string(),
        sandbox_id: sandbox.to_string(),
    };
    Ok((StatusCode::ACCEPTED, Json(view)))
}

pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let text = value
        .to_str()
        .ok()
        .filter(|text| !text.is_empty() && text.len() <= MAX_KEY);
    text.map(|text| Some(text.to_owned())).ok_or_else(|| {
        ApiError::invalid(
            "the header Idempotency-Key has 1 to 255 printable characters",
            "send a random UUID, or none",
        )
    })
}

/// Shows an execution.
#[utoipa::path(get, path = "/api/v1/sandboxes/{sandbox}/executions/{execution}",
    tag = "executions",
    params(("sandbox" = String, Path, description = "Its id"),
        ("execution" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = ExecutionView), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path((sandbox, execution)): Path<(String, String)>,
) -> Result<Json<ExecutionView>, ApiError> {
    let (sandbox, id) = (sandbox_id(&sandbox)?, execution_id(&execution)?);
    let access = caller.access_to(&app, sandbox, RUN).await?;
    Ok(Json(app.execution(&access, sandbox, id).await?.into()))
}

/// How what runs is ended.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Interrupt {
    /// Kill the kernel instead of interrupting the code: variables are gone then.
    #[serde(default)]
    kill: bool,
}

/// Interrupts this execution, and never another one that runs in its sandbox. Variables stay. One
/// that has ended is shown as it is; where its sandbox is gone, the answer is 409 `sandbox_gone`.
#[utoipa::path(post, path = "/api/v1/sandboxes/{sandbox}/executions/{execution}/interrupt",
    tag = "executions",
    params(("sandbox" = String, Path, description = "Its id"),
        ("execution" = String, Path, description = "Its id")),
    request_body = Interrupt,
    security(("api_key" = []), ("session" = [])),
    responses((status = 202, body = ExecutionView), Errors))]
pub(crate) async fn interrupt(
    State(app): State<App>,
    caller: Caller,
    Path((sandbox, execution)): Path<(String, String)>,
    Json(JsonObject(body)): Json<JsonObject<Interrupt>>,
) -> Result<(StatusCode, Json<ExecutionView>), ApiError> {
    let (sandbox, id) = (sandbox_id(&sandbox)?, execution_id(&execution)?);
    let access = caller.access_to(&app, sandbox, RUN).await?;
    let how = if body.kill {
        Cancel::Kill
    } else {
        Cancel::Interrupt
    };
    let execution = app.interrupt(&access, sandbox, id, how).await?;
    Ok((StatusCode::ACCEPTED, Json(execution.into())))
}

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventsQuery {
    /// The number of the last event that the caller has; 0 for all.
    pub(super) after: Option<u64>,
}

/// The number of the last event that a browser has, when it comes back by itself.
pub(super) fn last_event_id(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}

/// Streams the events of an execution: those that are stored and those that come, until it has
/// ended. Each is `{seq, type, at, data}`. A client that was cut off goes on with `after`, or
/// with the header `Last-Event-ID`. Streams of executions and of threads count together: one more than a
/// caller, or all callers of this server process, may have open is refused with 429 and `too_many_streams`.
#[utoipa::path(get, path = "/api/v1/sandboxes/{sandbox}/executions/{execution}/events",
    tag = "executions",
    params(("sandbox" = String, Path, description = "Its id"),
        ("execution" = String, Path, description = "Its id"), EventsQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Server-sent events", body = String,
        content_type = "text/event-stream"), Errors))]
pub(crate) async fn events(
    State(app): State<App>,
    caller: Caller,
    Path((sandbox, execution)): Path<(String, String)>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<SseEvent, Infallible>>>, ApiError> {
    let (sandbox, id) = (sandbox_id(&sandbox)?, execution_id(&execution)?);
    let access = caller.access_to(&app, sandbox, RUN).await?;
    app.execution(&access, sandbox, id).await?;
    let open = streams::open(&app, &caller, INSTEAD)?;
    let after = query.after.or_else(|| last_event_id(&headers)).unwrap_or(0);
    let follow = Follow {
        _open: open,
        app,
        sandbox,
        id,
        after,
        waiting: Vec::new().into_iter(),
        is_over: false,
    };
    let stream = futures_util::stream::unfold(follow, |mut follow| async move {
        let event = follow.next().await?;
        Some((Ok(event), follow))
    });
    Ok(Sse::new(stream).keep_alive(KeepAlive::new().interval(HEARTBEAT)))
}

/// A reader of one execution's events.
struct Follow {
    /// Counts it for as long as it is there.
    _open: OpenStream,
    app: App,
    sandbox: glovebox_protocol::ids::SandboxId,
    id: ExecutionId,
    after: u64,
    waiting: std::vec::IntoIter<glovebox_protocol::event::Event>,
    is_over: bool,
}

impl Follow {
    /// The next event; nothing after the last.
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.waiting.next() {
                self.after = event.seq;
                let sent = SseEvent::default().id(event.seq.to_string());
                return Some(sent.data(serde_json::to_string(&event).ok()?));
            }
            if self.is_over {
                return None;
            }
            if let Err(error) = self.read().await {
                tracing::warn!(execution = %self.id, error = chain(&error), "streaming events");
                return None;
            }
        }
    }

    /// Waits until there are events, or there will be none any more.
    async fn read(&mut self) -> Result<(), ExecutionError> {
        loop {
            // In this order: an execution that has ended here has stored all its events before.
            let mut news = self.app.running().follow(self.id);
            let found = self.app.store().execution(self.sandbox, self.id).await?;
            let has_ended = found.is_none_or(|found| found.state == ExecutionState::Ended);
            let events = self.app.store().events(self.id, self.after, READ).await?;
            let is_last = has_ended && events.len() < READ as usize;
            if !events.is_empty() || is_last {
                self.waiting = events.into_iter();
                self.is_over = is_last;
                return Ok(());
            }
            match &mut news {
                // Either it stores something, or it is over.
                Some(news) => {
                    let after = self.after;
                    let _ = news.wait_for(|stored| *stored > after).await;
                }
                None => tokio::time::sleep_until(Instant::now() + GLANCE).await,
            }
        }
    }
}

impl From<ExecutionError> for ApiError {
    fn from(error: ExecutionError) -> Self {
        let message = error.to_string();
        match error {
            ExecutionError::Sandbox(error) => error.into(),
            ExecutionError::NotFound => Self::not_found("execution"),
            ExecutionError::KeyIsTaken => Self::conflict(
                "idempotency_key_reused",
                message,
                "send another key with another request",
            ),
            ExecutionError::Busy { execution } => {
                Self::conflict("busy", message, "wait until it has ended, or interrupt it")
                    .with(json!({ "execution_id": execution.to_string() }))
            }
            ExecutionError::NotReady => Self::conflict("busy", message, "try again in a moment"),
            ExecutionError::Stopping => Self::runtime_unavailable(message),
            ExecutionError::TooLong { .. } => Self::invalid(
                message,
                "ask for less, or a system admin for a longer limit",
            ),
        }
    }
}
