//! What files look like: asked for by the file, and seen part by part.
//!
//! Parts are of a few types that a browser only shows. The one page of HTML has headers of its own,
//! which leave it no script, no connection and no way out of its frame.

use axum::Json;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use glovebox_protocol::ids::PreviewId;
use glovebox_store::{Access, KeyScope, PreviewPart, PreviewSource};
use serde::Serialize;
use utoipa::ToSchema;

use super::answers::Errors;
use super::body::FileBytes;
use super::caller::Caller;
use super::error::ApiError;
use super::preview_views::PreviewView;
use crate::app::App;
use crate::app::previews::check::SheetView;

/// What may become of a page of HTML in its frame: styles and pictures that it brings along, and
/// nothing else. `sandbox` without a word takes scripts, forms, links to the page around it, and
/// its origin.
const HTML_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
     font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox";

/// Markdown as it may be put into a page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MarkdownView {
    /// HTML of a few tags: no script, no picture, no style.
    html: String,
}

async fn of(app: &App, caller: &Caller, source: PreviewSource) -> Result<PreviewView, ApiError> {
    let (what, scope) = match source {
        PreviewSource::Artifact(_) => ("artifact", KeyScope::ArtifactsRead),
        PreviewSource::Attachment(_) => ("attachment", KeyScope::ThreadsRead),
        PreviewSource::KnowledgeFile(_) => ("knowledge file", KeyScope::KnowledgeRead),
    };
    let unknown = || ApiError::not_found(what);
    let access = match caller {
        Caller::Session(signed_in) => {
            let workspace = app.store().workspace_of_source(source).await?;
            signed_in
                .access(app, workspace.ok_or_else(unknown)?)
                .await
                .map_err(|_| unknown())?
        }
        Caller::Key(_) => caller.access(app, None, Some(scope)).await?,
    };
    let preview = app.preview_of(&access, source).await?.ok_or_else(unknown)?;
    Ok(PreviewView::of(&preview))
}

/// Shows what an artifact looks like, and has it made where nobody has asked yet: ask again until
/// its `state` is `ready` or `failed`. What is there can be seen before.
#[utoipa::path(get, path = "/api/v1/artifacts/{artifact}/preview", tag = "previews",
    params(("artifact" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = PreviewView), Errors))]
pub(crate) async fn of_artifact(
    State(app): State<App>,
    caller: Caller,
    Path(artifact): Path<String>,
) -> Result<Json<PreviewView>, ApiError> {
    let id = artifact
        .parse()
        .map_err(|_| ApiError::not_found("artifact"))?;
    let source = PreviewSource::Artifact(id);
    Ok(Json(of(&app, &caller, source).await?))
}

/// Shows what an attachment looks like, as for an artifact.
#[utoipa::path(get, path = "/api/v1/attachments/{attachment}/preview", tag = "previews",
    params(("attachment" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = PreviewView), Errors))]
pub(crate) async fn of_attachment(
    State(app): State<App>,
    caller: Caller,
    Path(attachment): Path<String>,
) -> Result<Json<PreviewView>, ApiError> {
    let id = attachment
        .parse()
        .map_err(|_| ApiError::not_found("attachment"))?;
    let source = PreviewSource::Attachment(id);
    Ok(Json(of(&app, &caller, source).await?))
}

/// Shows what a knowledge file looks like, as for an artifact.
#[utoipa::path(get, path = "/api/v1/knowledge/{file}/preview", tag = "previews",
    params(("file" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = PreviewView), Errors))]
pub(crate) async fn of_knowledge_file(
    State(app): State<App>,
    caller: Caller,
    Path(file): Path<String>,
) -> Result<Json<PreviewView>, ApiError> {
    let id = file
        .parse()
        .map_err(|_| ApiError::not_found("knowledge file"))?;
    let source = PreviewSource::KnowledgeFile(id);
    Ok(Json(of(&app, &caller, source).await?))
}

/// A part as it is: its bytes, and which of the few types they are.
async fn part(app: &App, caller: &Caller, id: &str, name: &str) -> Result<Response, ApiError> {
    let unknown = || ApiError::not_found("part of a preview");
    let id: PreviewId = id.parse().map_err(|_| unknown())?;
    let access = access_to(app, caller, id).await?.ok_or_else(unknown)?;
    let (part, bytes) = app
        .preview_part(&access, id, name)
        .await?
        .ok_or_else(unknown)?;
    let headers = [
        ("content-type", shown_type(&part).to_owned()),
        ("content-length", part.bytes.to_string()),
        // Types that a browser shows are pictures; the rest is for programs, and saved if opened.
        ("content-disposition", disposition(&part).to_owned()),
    ];
    Ok((headers, Body::from_stream(bytes)).into_response())
}

fn disposition(part: &PreviewPart) -> &'static str {
    if part.media_type.starts_with("image/") {
        "inline"
    } else {
        "attachment"
    }
}

/// A part's type as it is sent: one of these, whatever its row says.
fn shown_type(part: &PreviewPart) -> &'static str {
    match part.media_type.as_str() {
        "image/png" => "image/png",
        "image/jpeg" => "image/jpeg",
        "image/gif" => "image/gif",
        "image/webp" => "image/webp",
        "application/json" => "application/json",
        "text/plain" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

async fn access_to(app: &App, caller: &Caller, id: PreviewId) -> Result<Option<Access>, ApiError> {
    let Some(preview) = app.store().preview(id).await? else {
        return Ok(None);
    };
    Ok(match caller {
        Caller::Session(signed_in) => {
            let user = signed_in.user.id;
            app.store()
                .access_of_user(user, preview.workspace_id)
                .await?
        }
        // Which of its scopes reaches a file with these bytes is asked with the file.
        Caller::Key(access) => Some(access.clone()),
    })
}

/// Shows a page.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/pages/{number}", tag = "previews",
    params(("preview" = String, Path, description = "Its id"),
        ("number" = u32, Path, description = "From 1")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Its picture", body = inline(FileBytes),
        content_type = "image/png"), Errors))]
pub(crate) async fn page(
    State(app): State<App>,
    caller: Caller,
    Path((preview, number)): Path<(String, u32)>,
) -> Result<Response, ApiError> {
    part(&app, &caller, &preview, &format!("page-{number}.png")).await
}

/// Shows a page, small.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/thumbnails/{number}", tag = "previews",
    params(("preview" = String, Path, description = "Its id"),
        ("number" = u32, Path, description = "From 1")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Its picture", body = inline(FileBytes),
        content_type = "image/png"), Errors))]
pub(crate) async fn thumbnail(
    State(app): State<App>,
    caller: Caller,
    Path((preview, number)): Path<(String, u32)>,
) -> Result<Response, ApiError> {
    part(&app, &caller, &preview, &format!("thumbnail-{number}.png")).await
}

/// Shows a sheet.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/sheets/{number}", tag = "previews",
    params(("preview" = String, Path, description = "Its id"),
        ("number" = u32, Path, description = "From 1")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = SheetView), Errors))]
pub(crate) async fn sheet(
    State(app): State<App>,
    caller: Caller,
    Path((preview, number)): Path<(String, u32)>,
) -> Result<Response, ApiError> {
    part(&app, &caller, &preview, &format!("sheet-{number}.json")).await
}

/// Shows a picture.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/image", tag = "previews",
    params(("preview" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "It, as PNG, JPEG, GIF or WebP",
        body = inline(FileBytes), content_type = "image/*"), Errors))]
pub(crate) async fn image(
    State(app): State<App>,
    caller: Caller,
    Path(preview): Path<String>,
) -> Result<Response, ApiError> {
    part(&app, &caller, &preview, "image").await
}

/// Shows a text: of a file that is one, or what could be taken out of another one.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/text", tag = "previews",
    params(("preview" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "The text", body = String,
        content_type = "text/plain"), Errors))]
pub(crate) async fn text(
    State(app): State<App>,
    caller: Caller,
    Path(preview): Path<String>,
) -> Result<Response, ApiError> {
    part(&app, &caller, &preview, "text").await
}

/// Shows Markdown.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/markdown", tag = "previews",
    params(("preview" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = MarkdownView), Errors))]
pub(crate) async fn markdown(
    State(app): State<App>,
    caller: Caller,
    Path(preview): Path<String>,
) -> Result<Response, ApiError> {
    part(&app, &caller, &preview, "markdown").await
}

/// A page of HTML for a frame of the console: no script of it runs, and nothing in it reaches
/// anything.
#[utoipa::path(get, path = "/api/v1/previews/{preview}/html", tag = "previews",
    params(("preview" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "The page", body = String,
        content_type = "text/html"), Errors))]
pub(crate) async fn html(
    State(app): State<App>,
    caller: Caller,
    Path(preview): Path<String>,
) -> Result<Response, ApiError> {
    let mut response = part(&app, &caller, &preview, "html").await?;
    let headers = response.headers_mut();
    headers.remove("content-disposition");
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", HTML_POLICY),
        // For browsers that do not know `frame-ancestors`.
        ("x-frame-options", "SAMEORIGIN"),
    ] {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    Ok(response)
}
