//! Knowledge bases of workspaces.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use chrono::{DateTime, Utc};
use glovebox_protocol::ids::KnowledgeFileId;
use glovebox_store::{Access, KeyScope, KnowledgeFile};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answers::{Errors, Page, PageQuery, PageSize};
use super::artifacts::{encoded_name, stored};
use super::attachments::{UploadQuery, announced};
use super::body::FileBytes;
use super::caller::{Caller, From as Sender};
use super::error::ApiError;
use super::workspaces::workspace_id;
use crate::app::App;

/// A file of a knowledge base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnowledgeFileView {
    id: String,
    name: String,
    bytes: u64,
    /// By content.
    media_type: String,
    /// What people call whoever added it; empty for a service.
    added_by: String,
    created_at: DateTime<Utc>,
}

impl From<KnowledgeFile> for KnowledgeFileView {
    fn from(file: KnowledgeFile) -> Self {
        Self {
            id: file.id.to_string(),
            name: file.name,
            bytes: file.bytes,
            media_type: file.media_type,
            added_by: file.added_by,
            created_at: file.created_at,
        }
    }
}

/// Which knowledge base.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct KnowledgeQuery {
    /// The workspace; with an API key it is the key's own.
    workspace_id: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

/// Lists the knowledge base of a workspace, the newest first.
#[utoipa::path(get, path = "/api/v1/knowledge", tag = "knowledge", params(KnowledgeQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<KnowledgeFileView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<KnowledgeQuery>,
) -> Result<Json<Page<KnowledgeFileView>>, ApiError> {
    let workspace = query
        .workspace_id
        .as_deref()
        .map(workspace_id)
        .transpose()?;
    let scope = Some(KeyScope::KnowledgeRead);
    let access = caller.access(&app, workspace, scope).await?;
    let page = PageQuery {
        cursor: query.cursor,
        limit: query.limit,
    };
    let files = app
        .store()
        .knowledge_of(&access, page.after()?, page.fetch())
        .await?;
    let id = |file: &KnowledgeFile| file.id.to_string();
    Ok(Json(page.page(files, id, KnowledgeFileView::from)))
}

/// Adds a file to the knowledge base of a workspace. Replaces nothing.
#[utoipa::path(post, path = "/api/v1/knowledge", tag = "knowledge", params(UploadQuery),
    request_body(content = inline(Option<FileBytes>), content_type = "application/octet-stream",
        description = "Its bytes; none for an empty file"),
    security(("api_key" = []), ("session" = [])),
    responses((status = 201, body = KnowledgeFileView), Errors))]
pub(crate) async fn add(
    State(app): State<App>,
    caller: Caller,
    from: Sender,
    Query(query): Query<UploadQuery>,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<KnowledgeFileView>), ApiError> {
    let scope = Some(KeyScope::KnowledgeWrite);
    let access = caller.access(&app, query.workspace()?, scope).await?;
    let actor = caller.actor(&from);
    let parts = body.into_data_stream();
    let stored = app
        .add_knowledge(&access, &actor, &query.name, announced(&headers), parts)
        .await?;
    Ok((StatusCode::CREATED, Json(stored.into())))
}

async fn find(
    app: &App,
    caller: &Caller,
    id: &str,
    scope: KeyScope,
) -> Result<(Access, KnowledgeFile), ApiError> {
    let unknown = || ApiError::not_found("knowledge file");
    let id: KnowledgeFileId = id.parse().map_err(|_| unknown())?;
    let workspace = app.store().workspace_of_knowledge_file(id).await?;
    let access = caller
        .access_where(app, workspace, "knowledge file", scope)
        .await?;
    let found = app.knowledge_file(&access, id).await?;
    Ok((access, found))
}

/// Downloads a file of the knowledge base.
#[utoipa::path(get, path = "/api/v1/knowledge/{file}/content", tag = "knowledge",
    params(("file" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Its bytes", body = inline(FileBytes),
        content_type = "application/octet-stream"), Errors))]
pub(crate) async fn content(
    State(app): State<App>,
    caller: Caller,
    Path(file): Path<String>,
) -> Result<Response, ApiError> {
    let (_, found) = find(&app, &caller, &file, KeyScope::KnowledgeRead).await?;
    let name = encoded_name(&found.name);
    stored(&app, found.id, &name, found.bytes, &found.sha256).await
}

/// Takes a file out of the knowledge base. Sandboxes that have opened it keep their copy.
#[utoipa::path(delete, path = "/api/v1/knowledge/{file}", tag = "knowledge",
    params(("file" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 204), Errors))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    from: Sender,
    Path(file): Path<String>,
) -> Result<StatusCode, ApiError> {
    let (access, found) = find(&app, &caller, &file, KeyScope::KnowledgeWrite).await?;
    let actor = caller.actor(&from);
    app.delete_knowledge(&access, &actor, found.id).await?;
    Ok(StatusCode::NO_CONTENT)
}
