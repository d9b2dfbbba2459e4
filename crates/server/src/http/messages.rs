//! Messages of threads: sent, stopped, tried again.

use axum::Json;
use axum::extract::{Path, Query, State};
use glovebox_protocol::ids::{AttachmentId, MessageId};
use glovebox_protocol::thread::MessageKind;
use glovebox_store::KeyScope;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::Errors;
use super::body::JsonObject;
use super::caller::Caller;
use super::error::ApiError;
use super::executions::idempotency_key;
use super::threads::thread_id;
use crate::app::App;
use crate::app::messages::{Accepted, Sending};

/// A message to be sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// Words for the assistant, or Python as it would be typed into a cell of a notebook.
    #[schema(max_length = 100000)]
    text: String,
    #[schema(value_type = KindName)]
    kind: MessageKind,
    /// Files that were uploaded for it.
    #[serde(default)]
    #[schema(max_items = 20)]
    attachments: Vec<String>,
}

/// Whether a message is words or code.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only described, in the document")]
pub(crate) enum KindName {
    /// Words for the assistant.
    Text,
    /// Python that runs as it is.
    Code,
}

/// A message that was sent, and the reply that is on its way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcceptedMessage {
    message_id: String,
    reply_id: String,
}

impl From<Accepted> for AcceptedMessage {
    fn from(accepted: Accepted) -> Self {
        Self {
            message_id: accepted.message.to_string(),
            reply_id: accepted.reply.to_string(),
        }
    }
}

/// Sends a message. Answers at once; what happens is told by the thread's events. One reply runs at
/// a time. With the header `Idempotency-Key` the request can be repeated: the same message under
/// the same key is sent once.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/messages", tag = "threads",
    params(("thread" = String, Path, description = "Its id"),
        ("Idempotency-Key" = Option<String>, Header, description = "Names the request")),
    request_body = SendMessage,
    security(("api_key" = []), ("session" = [])),
    responses((status = 202, body = AcceptedMessage), Errors))]
pub(crate) async fn send(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    headers: HeaderMap,
    Json(JsonObject(body)): Json<JsonObject<SendMessage>>,
) -> Result<(StatusCode, Json<AcceptedMessage>), ApiError> {
    let id = thread_id(&thread)?;
    let (access, _) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsWrite)
        .await?;
    let attachments: Result<Vec<AttachmentId>, ApiError> = body
        .attachments
        .iter()
        .map(|text| {
            text.parse().map_err(|_| {
                ApiError::invalid("an attachment is named by no id", "send the ids of uploads")
            })
        })
        .collect();
    let sending = Sending {
        kind: body.kind,
        text: body.text,
        attachments: attachments?,
        idempotency_key: idempotency_key(&headers)?,
    };
    let accepted = app.send_message(&access, id, sending).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted.into())))
}

/// Tries the reply to the newest message once more, with the rights of whoever asks.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/messages/{message}/retry", tag = "threads",
    params(("thread" = String, Path, description = "Its id"),
        ("message" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 202, body = AcceptedMessage), Errors))]
pub(crate) async fn retry(
    State(app): State<App>,
    caller: Caller,
    Path((thread, message)): Path<(String, String)>,
) -> Result<(StatusCode, Json<AcceptedMessage>), ApiError> {
    let id = thread_id(&thread)?;
    let (access, _) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsWrite)
        .await?;
    let message: MessageId = message
        .parse()
        .map_err(|_| ApiError::not_found("message"))?;
    let found = app.store().message(id, message).await?;
    found.ok_or_else(|| ApiError::not_found("message"))?;
    let accepted = app.retry_message(&access, id, message).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted.into())))
}

/// What is to stop.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StopQuery {
    /// Only this reply: where it has ended meanwhile, nothing is stopped.
    reply_id: Option<String>,
}

/// What was asked to stop.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoppedView {
    /// Whether anything ran.
    was_running: bool,
    /// The reply that ends.
    reply_id: Option<String>,
}

/// Stops what runs in a thread. The reply ends a little later, which its events tell: code is
/// interrupted first, and killed where that does not help.
#[utoipa::path(post, path = "/api/v1/threads/{thread}/stop", tag = "threads",
    params(("thread" = String, Path, description = "Its id"), StopQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 202, body = StoppedView), Errors))]
pub(crate) async fn stop(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    Query(query): Query<StopQuery>,
) -> Result<(StatusCode, Json<StoppedView>), ApiError> {
    let id = thread_id(&thread)?;
    let only = query.reply_id.map(|text| text.parse()).transpose();
    let only: Option<MessageId> = only.map_err(|_| {
        ApiError::invalid(
            "`reply_id` is no id",
            "send the id of a reply, or leave it out",
        )
    })?;
    let (access, _) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsWrite)
        .await?;
    let reply = app.stop_thread(&access, id, only).await?;
    let view = StoppedView {
        was_running: reply.is_some(),
        reply_id: reply.map(|id| id.to_string()),
    };
    Ok((StatusCode::ACCEPTED, Json(view)))
}
