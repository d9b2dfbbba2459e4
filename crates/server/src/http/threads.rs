//! Threads of chat.

use axum::Json;
use axum::extract::{Path, Query, State};
use chrono::{DateTime, Utc};
use glovebox_protocol::ids::ThreadId;
use glovebox_store::{Access, KeyScope, Thread, ThreadPlace};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Errors, Page, PageQuery, PageSize, searched};
use super::body::JsonObject;
use super::caller::Caller;
use super::error::ApiError;
use super::views::DeniedView;
use super::workspaces::workspace_id;
use crate::app::App;
use crate::app::chats::{ChatInfo, MAX_FILES};
use crate::app::threads::{ChatError, ThreadChange};

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadView {
    id: String,
    workspace_id: String,
    title: String,
    owner: OwnerView,
    /// Whether every member of the workspace reads it.
    is_shared: bool,
    /// Whether it is the caller's.
    is_own: bool,
    /// Whether the caller may write into it.
    may_write: bool,
    /// Whether the caller may rename, share and delete it.
    may_change: bool,
    /// To be sent back with a change.
    version: i64,
    /// The reply that is on its way.
    running_reply: Option<String>,
    /// The number of its newest event.
    last_seq: u64,
    created_at: DateTime<Utc>,
    /// When something last happened in it.
    active_at: DateTime<Utc>,
}

/// Whose a thread is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OwnerView {
    /// Nothing for a service's.
    user_id: Option<String>,
    name: String,
}

impl ThreadView {
    fn of(thread: Thread, access: &Access) -> Self {
        Self {
            is_own: thread.is_own(access),
            may_write: thread.may_write(access),
            may_change: thread.may_change(access),
            id: thread.id.to_string(),
            workspace_id: thread.workspace_id.to_string(),
            title: thread.title,
            owner: OwnerView {
                user_id: thread.user_id.map(|id| id.to_string()),
                name: thread.owner,
            },
            is_shared: thread.is_shared,
            version: thread.version,
            running_reply: thread.running_reply.map(|id| id.to_string()),
            last_seq: thread.last_seq,
            created_at: thread.created_at,
            active_at: thread.active_at,
        }
    }
}

/// Reads a thread's id from a path; a text that is none names no thread.
pub(super) fn thread_id(text: &str) -> Result<ThreadId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("thread"))
}

/// Which threads.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ThreadsQuery {
    /// The workspace; with an API key it is the key's own.
    workspace_id: Option<String>,
    /// Those whose title holds this.
    #[param(max_length = 200)]
    q: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

/// A place in the list, as a cursor: the milliseconds of the last event, and the thread.
#[derive(Debug, Clone, Copy)]
struct Cursor(ThreadPlace);

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}_{}", self.0.active_at.timestamp_millis(), self.0.id)
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (ms, id) = text.split_once('_').ok_or(())?;
        let ms = ms.parse().map_err(|_| ())?;
        Ok(Self(ThreadPlace {
            active_at: DateTime::from_timestamp_millis(ms).ok_or(())?,
            id: id.parse().map_err(|_| ())?,
        }))
    }
}

/// Lists the threads that the caller may read, the last active first.
#[utoipa::path(get, path = "/api/v1/threads", tag = "threads", params(ThreadsQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<ThreadView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ThreadsQuery>,
) -> Result<Json<Page<ThreadView>>, ApiError> {
    let workspace = query
        .workspace_id
        .as_deref()
        .map(workspace_id)
        .transpose()?;
    let scope = Some(KeyScope::ThreadsRead);
    let access = caller.access(&app, workspace, scope).await?;
    let part = searched("q", query.q)?.unwrap_or_default();
    let page = PageQuery {
        cursor: query.cursor,
        limit: query.limit,
    };
    let after = page.after::<Cursor>()?.map(|cursor| cursor.0);
    let threads = app
        .store()
        .threads_of(&access, after, &part, page.fetch())
        .await?;
    let place = |thread: &Thread| Cursor(thread.place()).to_string();
    Ok(Json(page.page(threads, place, |thread| {
        ThreadView::of(thread, &access)
    })))
}

/// A thread to be begun.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateThread {
    /// The workspace; with an API key it is the key's own.
    #[serde(default)]
    workspace_id: Option<String>,
    /// What it is called; the first message names it where nobody says.
    #[serde(default)]
    #[schema(max_length = 200)]
    title: Option<String>,
    /// Whether every member of the workspace reads it.
    #[serde(default)]
    is_shared: bool,
}

/// Begins a thread.
#[utoipa::path(post, path = "/api/v1/threads", tag = "threads", request_body = CreateThread,
    security(("api_key" = []), ("session" = [])),
    responses((status = 201, body = ThreadView), Errors))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Json(JsonObject(body)): Json<JsonObject<CreateThread>>,
) -> Result<(StatusCode, Json<ThreadView>), ApiError> {
    let workspace = body.workspace_id.as_deref().map(workspace_id).transpose()?;
    let scope = Some(KeyScope::ThreadsWrite);
    let access = caller.access(&app, workspace, scope).await?;
    let title = body.title.as_deref();
    let thread = app.create_thread(&access, title, body.is_shared).await?;
    Ok((StatusCode::CREATED, Json(ThreadView::of(thread, &access))))
}

/// Shows a thread.
#[utoipa::path(get, path = "/api/v1/threads/{thread}", tag = "threads",
    params(("thread" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = ThreadView), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
) -> Result<Json<ThreadView>, ApiError> {
    let id = thread_id(&thread)?;
    let (access, thread) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsRead)
        .await?;
    Ok(Json(ThreadView::of(thread, &access)))
}

/// What is to be changed of a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeThread {
    #[serde(default)]
    #[schema(max_length = 200)]
    title: Option<String>,
    /// Whether every member of the workspace reads it.
    #[serde(default)]
    is_shared: Option<bool>,
    /// The version that was seen.
    version: i64,
}

/// Renames a thread, shares it, or makes it private again. Only its owner does; a service's thread
/// is changed by whoever manages the workspace, too.
#[utoipa::path(patch, path = "/api/v1/threads/{thread}", tag = "threads",
    params(("thread" = String, Path, description = "Its id")), request_body = ChangeThread,
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = ThreadView), Errors))]
pub(crate) async fn change(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<ChangeThread>>,
) -> Result<Json<ThreadView>, ApiError> {
    let id = thread_id(&thread)?;
    let (access, _) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsWrite)
        .await?;
    let change = ThreadChange {
        title: body.title,
        is_shared: body.is_shared,
        version: body.version,
    };
    let thread = app.change_thread(&access, id, &change).await?;
    Ok(Json(ThreadView::of(thread, &access)))
}

/// Deletes a thread with everything in it: messages, attachments, artifacts. Its sandbox ends.
#[utoipa::path(delete, path = "/api/v1/threads/{thread}", tag = "threads",
    params(("thread" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 204), Errors))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
) -> Result<StatusCode, ApiError> {
    let id = thread_id(&thread)?;
    let (access, _) = caller
        .access_to_thread(&app, id, KeyScope::ThreadsWrite)
        .await?;
    app.delete_thread(&access, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What chat can do in a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatView {
    /// Whether the caller may begin threads and write into shared ones.
    may_write: bool,
    /// Whether there is a model that answers words.
    has_model: bool,
    model_name: Option<String>,
    limits: ChatLimitsView,
    /// Why code cannot run for the caller, where it cannot.
    code_execution: Option<DeniedView>,
    /// How long one step of code may run.
    execution_seconds: u32,
}

/// What files may be like.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatLimitsView {
    max_file_bytes: u64,
    /// All files of a sandbox together.
    max_total_bytes: u64,
    /// With one message.
    max_files: usize,
}

impl From<ChatInfo> for ChatView {
    fn from(info: ChatInfo) -> Self {
        Self {
            may_write: info.may_write,
            has_model: info.model.is_some(),
            model_name: info.model,
            limits: ChatLimitsView {
                max_file_bytes: info.limits.file_bytes,
                max_total_bytes: info.limits.total_bytes,
                max_files: MAX_FILES,
            },
            code_execution: info.denial.map(|denial| DeniedView {
                name: denial.name.into(),
                message: denial.message,
                fix: denial.fix,
            }),
            execution_seconds: info.limits.execution_seconds,
        }
    }
}

/// Says what chat can do in a workspace: whether code runs, which model answers, what files may be
/// like.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace}/chat", tag = "threads",
    params(("workspace" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = ChatView), Errors))]
pub(crate) async fn chat(
    State(app): State<App>,
    caller: Caller,
    Path(workspace): Path<String>,
) -> Result<Json<ChatView>, ApiError> {
    let workspace = workspace_id(&workspace)?;
    let scope = Some(KeyScope::ThreadsRead);
    let access = caller.access(&app, Some(workspace), scope).await?;
    Ok(Json(app.chat_info(&access).await?.into()))
}

impl From<ChatError> for ApiError {
    fn from(error: ChatError) -> Self {
        let message = error.to_string();
        match error {
            ChatError::NotFound(what) => Self::not_found(what),
            ChatError::Forbidden(_) => Self::forbidden(
                message,
                "ask its owner, or an admin of the workspace for another role",
            ),
            ChatError::Invalid { fix, .. } => Self::invalid(message, fix),
            ChatError::Busy { reply } => {
                Self::conflict("busy", message, "wait until it has ended, or stop it")
                    .with(json!({ "reply_id": reply.to_string() }))
            }
            ChatError::KeyIsTaken => Self::conflict(
                "idempotency_key_reused",
                message,
                "send another key with another message",
            ),
            ChatError::NoAttachment(_) => Self::invalid(
                message,
                "upload it again; a file is sent once, by whoever uploaded it",
            ),
            ChatError::NotNewest => {
                Self::conflict("not_newest", message, "send the message again instead")
            }
            ChatError::TooLarge { fix, .. } => Self::too_large(message, fix),
            ChatError::BrokenOff => Self::invalid(message, "send the file again"),
            ChatError::NameTaken => Self::conflict(
                "name_taken",
                message,
                "delete that one first, or give this one another name",
            ),
            ChatError::NotRestorable(_) => {
                Self::conflict("not_restorable", message, "choose another version")
            }
            ChatError::Quota { name, fix, .. } => Self::quota(name, message, fix),
            ChatError::DiskFull => Self::no_room(),
            ChatError::Store(error) => error.into(),
        }
    }
}
