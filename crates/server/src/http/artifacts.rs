//! Files that left sandboxes.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::ArtifactId;
use glovebox_store::{Access, Artifact, ArtifactFilter, KeyScope, ObjectKey, UploadedName};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use super::answers::{Errors, Page, PageQuery, PageSize};
use super::body::FileBytes;
use super::caller::Caller;
use super::error::ApiError;
use super::sandboxes::sandbox_id;
use super::threads::thread_id;
use super::views::ArtifactView;
use super::workspaces::workspace_id;
use crate::app::App;

/// Headers of an answer that a browser saves and never shows.
pub(super) fn download(encoded: &str, bytes: u64) -> [(&'static str, String); 3] {
    let base = saved_name(encoded);
    [
        ("content-type", "application/octet-stream".into()),
        (
            "content-disposition",
            format!("attachment; filename*=UTF-8''{base}"),
        ),
        ("content-length", bytes.to_string()),
    ]
}

/// A file of the object store, for a browser to save; `encoded` is its name as it stands in an address.
pub(super) async fn stored(
    app: &App,
    key: impl Into<ObjectKey>,
    encoded: &str,
    bytes: u64,
    sha256: &str,
) -> Result<Response, ApiError> {
    let stream = app.objects().read_stored(key, bytes, sha256).await?;
    Ok((download(encoded, bytes), Body::from_stream(stream)).into_response())
}

/// The name under which a browser saves a file: cleaned as those that people bring, since code may call
/// one whatever it likes.
fn saved_name(encoded: &str) -> String {
    let name: Option<FileName> = encoded.parse().ok();
    let base = name.as_ref().map(FileName::base).unwrap_or_default();
    encoded_name(UploadedName::of(&String::from_utf8_lossy(base)).as_str())
}

/// A name of people's as it stands in an address.
pub(super) fn encoded_name(name: &str) -> String {
    FileName::from_bytes(name).map_or_else(|_| "file".into(), |name| name.encoded())
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
    /// Those of one thread only.
    thread_id: Option<String>,
    /// The newest version of each name only.
    newest: Option<bool>,
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
    let filter = ArtifactFilter {
        lease: query.sandbox_id.as_deref().map(sandbox_id).transpose()?,
        thread: query.thread_id.as_deref().map(thread_id).transpose()?,
        is_newest: query.newest.unwrap_or(false),
    };
    let page = PageQuery {
        cursor: query.cursor,
        limit: query.limit,
    };
    let artifacts = app
        .store()
        .artifacts_of(&access, filter, page.after()?, page.fetch())
        .await?;
    let id = |artifact: &Artifact| artifact.id.to_string();
    let writable = app.writable_threads(&access, &artifacts).await?;
    Ok(Json(page.page(artifacts, id, |artifact| {
        ArtifactView::of(artifact, &writable)
    })))
}

async fn view(app: &App, access: &Access, artifact: Artifact) -> Result<ArtifactView, ApiError> {
    let artifacts = std::slice::from_ref(&artifact);
    let writable = app.writable_threads(access, artifacts).await?;
    Ok(ArtifactView::of(artifact, &writable))
}

async fn find(app: &App, caller: &Caller, id: &str) -> Result<(Access, Artifact), ApiError> {
    let unknown = || ApiError::not_found("artifact");
    let id: ArtifactId = id.parse().map_err(|_| unknown())?;
    let workspace = app.store().workspace_of_artifact(id).await?;
    let access = caller
        .access_where(app, workspace, "artifact", KeyScope::ArtifactsRead)
        .await?;
    let found = app.store().artifact_of(&access, id).await?;
    Ok((access, found.ok_or_else(unknown)?))
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
    let (access, artifact) = find(&app, &caller, &artifact).await?;
    Ok(Json(view(&app, &access, artifact).await?))
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
    let (_, artifact) = find(&app, &caller, &artifact).await?;
    let (id, name) = (artifact.bytes_id(), &artifact.name);
    stored(&app, id, name, artifact.bytes, &artifact.sha256).await
}

/// Lists the versions of an artifact's name in its thread, else in its sandbox, the newest first.
#[utoipa::path(get, path = "/api/v1/artifacts/{artifact}/versions", tag = "artifacts",
    params(("artifact" = String, Path, description = "Its id"), PageQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<ArtifactView>), Errors))]
pub(crate) async fn versions(
    State(app): State<App>,
    caller: Caller,
    Path(artifact): Path<String>,
    Query(page): Query<PageQuery>,
) -> Result<Json<Page<ArtifactView>>, ApiError> {
    let (access, artifact) = find(&app, &caller, &artifact).await?;
    let versions = app
        .store()
        .versions_of(&artifact, page.after()?, page.fetch())
        .await?;
    let writable = app.writable_threads(&access, &versions).await?;
    let id = |artifact: &Artifact| artifact.id.to_string();
    Ok(Json(page.page(versions, id, |artifact| {
        ArtifactView::of(artifact, &writable)
    })))
}

/// Makes an older version of a thread's artifact the newest one again: a new version with its bytes,
/// which are back in the sandbox with the next run. With an API key this needs `threads:write`, too.
#[utoipa::path(post, path = "/api/v1/artifacts/{artifact}/restore", tag = "artifacts",
    params(("artifact" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 201, body = ArtifactView), Errors))]
pub(crate) async fn restore(
    State(app): State<App>,
    caller: Caller,
    Path(artifact): Path<String>,
) -> Result<(StatusCode, Json<ArtifactView>), ApiError> {
    let (access, old) = find(&app, &caller, &artifact).await?;
    let scope = KeyScope::ThreadsWrite;
    if !access.has_scope(scope) {
        return Err(ApiError::forbidden(
            format!("this key has no scope `{scope}`"),
            "make a key that has it",
        ));
    }
    let restored = app.restore_artifact(&access, &old).await?;
    let view = view(&app, &access, restored).await?;
    Ok((StatusCode::CREATED, Json(view)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_saved_under_names_that_show_what_they_are() {
        for (stored, saved) in [
            ("plain%20name.txt", "plain%20name.txt"),
            ("folder/table.csv", "table.csv"),
            ("%E2%80%AEgpj.exe.txt", "_gpj.exe.txt"),
            ("new%0Aline.txt", "new_line.txt"),
            ("a%5C..%5Cb.txt", "b.txt"),
            ("%FF%FE.txt", "%EF%BF%BD%EF%BF%BD.txt"),
            ("%E2%80%8B.txt", "_.txt"),
        ] {
            assert_eq!(saved_name(stored), saved, "{stored}");
        }
    }
}
