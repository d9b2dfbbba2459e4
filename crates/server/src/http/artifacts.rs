//! Files that left sandboxes.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use glovebox_protocol::file::{FileName, escape_for_display};
use glovebox_protocol::ids::ArtifactId;
use glovebox_store::{Artifact, KeyScope};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answers::{Errors, Page, PageQuery, PageSize};
use super::body::FileBytes;
use super::caller::Caller;
use super::error::ApiError;
use super::sandboxes::sandbox_id;
use super::views::ArtifactView;
use super::workspaces::workspace_id;
use crate::app::App;

/// A name from a sandbox as it may be shown.
pub(super) fn shown_name(encoded: &str) -> String {
    match encoded.parse::<FileName>() {
        Ok(name) => name.for_display(),
        Err(_) => escape_for_display(encoded.as_bytes()),
    }
}

/// Headers of an answer that a browser saves and never shows.
pub(super) fn download(encoded: &str, bytes: u64) -> [(&'static str, String); 3] {
    let base = encoded.rsplit('/').next().unwrap_or_default();
    [
        ("content-type", "application/octet-stream".into()),
        (
            "content-disposition",
            format!("attachment; filename*=UTF-8''{base}"),
        ),
        ("content-length", bytes.to_string()),
    ]
}

/// Which artifacts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ArtifactsQuery {
    /// The workspace; with an API key it is the key's own.
    workspace_id: Option<String>,
    /// Those of one sandbox only.
    sandbox_id: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

/// Lists artifacts, the newest first.
#[utoipa::path(get, path = "/api/v1/artifacts", tag = "artifacts", params(ArtifactsQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<ArtifactView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<ArtifactsQuery>,
) -> Result<Json<Page<ArtifactView>>, ApiError> {
    let workspace = query
        .workspace_id
        .as_deref()
        .map(workspace_id)
        .transpose()?;
    let scope = Some(KeyScope::ArtifactsRead);
    let access = caller.access(&app, workspace, scope).await?;
    let sandbox = query.sandbox_id.as_deref().map(sandbox_id).transpose()?;
    let page = PageQuery {
        cursor: query.cursor,
        limit: query.limit,
    };
    let artifacts = app
        .store()
        .artifacts_of(&access, sandbox, page.after()?, page.fetch())
        .await?;
    let id = |artifact: &Artifact| artifact.id.to_string();
    Ok(Json(page.page(artifacts, id, ArtifactView::from)))
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<Artifact, ApiError> {
    let unknown = || ApiError::not_found("artifact");
    let id: ArtifactId = id.parse().map_err(|_| unknown())?;
    let scope = Some(KeyScope::ArtifactsRead);
    let access = match caller {
        Caller::Session(signed_in) => {
            let workspace = app.store().workspace_of_artifact(id).await?;
            signed_in
                .access(app, workspace.ok_or_else(unknown)?)
                .await
                .map_err(|_| unknown())?
        }
        Caller::Key(_) => caller.access(app, None, scope).await?,
    };
    app.store()
        .artifact_of(&access, id)
        .await?
        .ok_or_else(unknown)
}

/// Shows an artifact.
#[utoipa::path(get, path = "/api/v1/artifacts/{artifact}", tag = "artifacts",
    params(("artifact" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = ArtifactView), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(artifact): Path<String>,
) -> Result<Json<ArtifactView>, ApiError> {
    Ok(Json(find(&app, &caller, &artifact).await?.into()))
}

/// Downloads an artifact: the bytes that the code wrote, as an attachment.
#[utoipa::path(get, path = "/api/v1/artifacts/{artifact}/content", tag = "artifacts",
    params(("artifact" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Its bytes", body = inline(FileBytes),
        content_type = "application/octet-stream"), Errors))]
pub(crate) async fn content(
    State(app): State<App>,
    caller: Caller,
    Path(artifact): Path<String>,
) -> Result<Response, ApiError> {
    let artifact = find(&app, &caller, &artifact).await?;
    let stream = app.objects().read(artifact.id).await?;
    let headers = download(&artifact.name, artifact.bytes);
    Ok((headers, Body::from_stream(stream)).into_response())
}
