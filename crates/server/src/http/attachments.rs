//! Files that people attach to messages.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{AttachmentId, WorkspaceId};
use glovebox_store::{Access, Attachment, KeyScope};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::Errors;
use super::artifacts::{encoded_name, stored};
use super::body::FileBytes;
use super::caller::Caller;
use super::error::ApiError;
use super::workspaces::workspace_id;
use crate::app::App;

/// A file that somebody brought.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttachmentView {
    id: String,
    /// Its name; once it was sent, its name in the thread.
    name: String,
    bytes: u64,
    /// In hexadecimal.
    sha256: String,
    /// By content.
    media_type: String,
    /// The thread that it was sent into.
    thread_id: Option<String>,
    created_at: DateTime<Utc>,
}

impl From<Attachment> for AttachmentView {
    fn from(attachment: Attachment) -> Self {
        Self {
            id: attachment.id.to_string(),
            name: attachment.name,
            bytes: attachment.bytes,
            sha256: attachment.sha256,
            media_type: attachment.media_type,
            thread_id: attachment.thread_id.map(|id| id.to_string()),
            created_at: attachment.created_at,
        }
    }
}

/// What is uploaded, and where to.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct UploadQuery {
    /// The workspace; with an API key it is the key's own.
    workspace_id: Option<String>,
    /// What the file is called.
    pub(super) name: String,
}

impl UploadQuery {
    /// The workspace that is named, if one is.
    pub(super) fn workspace(&self) -> Result<Option<WorkspaceId>, ApiError> {
        self.workspace_id.as_deref().map(workspace_id).transpose()
    }
}

/// How long a body says that it is.
pub(super) fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Uploads a file that is to be sent with a message. One that is not sent within a day is thrown
/// away.
#[utoipa::path(post, path = "/api/v1/attachments", tag = "attachments", params(UploadQuery),
    request_body(content = inline(Option<FileBytes>), content_type = "application/octet-stream",
        description = "Its bytes; none for an empty file"),
    security(("api_key" = []), ("session" = [])),
    responses((status = 201, body = AttachmentView), Errors))]
pub(crate) async fn upload(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<UploadQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<AttachmentView>), ApiError> {
    let scope = Some(KeyScope::FilesWrite);
    let access = caller.access(&app, query.workspace()?, scope).await?;
    let parts = body.into_data_stream();
    let stored = app
        .upload_attachment(&access, &query.name, announced(&headers), parts)
        .await?;
    Ok((StatusCode::CREATED, Json(stored.into())))
}

async fn find(
    app: &App,
    caller: &Caller,
    id: &str,
    scope: KeyScope,
) -> Result<(Access, Attachment), ApiError> {
    let id: AttachmentId = id.parse().map_err(|_| ApiError::not_found("attachment"))?;
    let workspace = app.store().workspace_of_attachment(id).await?;
    let access = caller
        .access_where(app, workspace, "attachment", scope)
        .await?;
    let found = app.attachment(&access, id).await?;
    Ok((access, found))
}

/// Shows an attachment: one that was sent to whoever may read its thread, one that was not to
/// whoever uploaded it.
#[utoipa::path(get, path = "/api/v1/attachments/{attachment}", tag = "attachments",
    params(("attachment" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = AttachmentView), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(attachment): Path<String>,
) -> Result<Json<AttachmentView>, ApiError> {
    let (_, found) = find(&app, &caller, &attachment, KeyScope::ThreadsRead).await?;
    Ok(Json(found.into()))
}

/// Downloads an attachment: the bytes that were uploaded.
#[utoipa::path(get, path = "/api/v1/attachments/{attachment}/content", tag = "attachments",
    params(("attachment" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Its bytes", body = inline(FileBytes),
        content_type = "application/octet-stream"), Errors))]
pub(crate) async fn content(
    State(app): State<App>,
    caller: Caller,
    Path(attachment): Path<String>,
) -> Result<Response, ApiError> {
    let (_, found) = find(&app, &caller, &attachment, KeyScope::ThreadsRead).await?;
    let name = encoded_name(&found.name);
    stored(&app, found.id, &name, found.bytes, &found.sha256).await
}

/// Throws away a file that was not sent.
#[utoipa::path(delete, path = "/api/v1/attachments/{attachment}", tag = "attachments",
    params(("attachment" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 204), Errors))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(attachment): Path<String>,
) -> Result<StatusCode, ApiError> {
    let (access, found) = find(&app, &caller, &attachment, KeyScope::FilesWrite).await?;
    app.delete_attachment(&access, found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
