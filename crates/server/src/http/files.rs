//! Files of a sandbox.

use std::convert::Infallible;

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use glovebox_protocol::file::{FileKind, FileName};
use glovebox_protocol::ids::SandboxId;
use glovebox_store::{Access, KeyScope, Permission};
use http::StatusCode;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use tokio::io::AsyncWriteExt as _;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Errors, Page};
use super::artifacts::download;
use super::attachments::announced;
use super::body::FileBytes;
use super::caller::Caller;
use super::error::ApiError;
use super::sandboxes::sandbox_id;
use crate::app::App;
use crate::app::artifacts::shown_name;
use crate::app::sandboxes::SandboxError;
use crate::app::spool::{SpoolError, Spooled};
use crate::failure::chain;

/// A file or folder in a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileView {
    /// Its path below the workspace folder, percent-encoded as in the address of its content.
    path: String,
    /// The same for display: unusual bytes are escaped.
    name: String,
    /// `file`, `folder`, `symlink` or `special`.
    kind: String,
    bytes: u64,
}

/// A file that was pushed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredFile {
    path: String,
    bytes: u64,
    /// In hexadecimal.
    sha256: String,
}

/// From where on.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilesQuery {
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
}

fn file_name(encoded: &str) -> Result<FileName, ApiError> {
    encoded.parse().map_err(|error| {
        ApiError::invalid(
            format!("the path names no file: {error}"),
            "send a relative path without `..`, its bytes percent-encoded",
        )
    })
}

/// Lists the files of a sandbox, by name.
#[utoipa::path(get, path = "/api/v1/sandboxes/{sandbox}/files", tag = "files",
    params(("sandbox" = String, Path, description = "Its id"), FilesQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<FileView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(sandbox): Path<String>,
    Query(query): Query<FilesQuery>,
) -> Result<Json<Page<FileView>>, ApiError> {
    let sandbox = sandbox_id(&sandbox)?;
    let access = caller
        .access_to(&app, sandbox, Some(KeyScope::FilesRead))
        .await?;
    let after = query.cursor.as_deref().map(file_name).transpose()?;
    let listing = app.list_files(&access, sandbox, after.as_ref()).await?;
    let next_cursor = listing
        .truncated
        .then(|| listing.entries.last().map(|file| file.name.encoded()))
        .flatten();
    let view = |file: glovebox_protocol::file::FileStat| {
        let path = file.name.encoded();
        FileView {
            name: shown_name(&path),
            path,
            kind: kind(file.kind).into(),
            bytes: file.bytes,
        }
    };
    Ok(Json(Page {
        items: listing.entries.into_iter().map(view).collect(),
        next_cursor,
    }))
}

const fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Folder => "folder",
        FileKind::Symlink => "symlink",
        FileKind::Special => "special",
    }
}

/// Pushes a file in, in place of one of that name.
#[utoipa::path(put, path = "/api/v1/sandboxes/{sandbox}/files/{*path}", tag = "files",
    params(("sandbox" = String, Path, description = "Its id"),
        ("path" = String, Path, description = "Where, relative to the workspace folder")),
    request_body(content = inline(Option<FileBytes>), content_type = "application/octet-stream",
        description = "Its bytes; none for an empty file"),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = StoredFile), Errors))]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    path: FilePath,
    headers: http::HeaderMap,
    body: Body,
) -> Result<Json<StoredFile>, ApiError> {
    let sandbox = sandbox_id(&path.sandbox)?;
    let access = caller
        .access_to(&app, sandbox, Some(KeyScope::FilesWrite))
        .await?;
    may_write(&app, &access, sandbox).await?;
    let name = file_name(&path.encoded)?;
    let (_, limit) = app.files_of(&access, sandbox).await?;
    let spooled = spool(&app, &access, announced(&headers), body, limit).await?;
    let stored = app
        .put_file(&access, sandbox, &name, &spooled.path())
        .await?;
    Ok(Json(StoredFile {
        path: name.encoded(),
        bytes: stored.bytes,
        sha256: stored.sha256.to_string(),
    }))
}

/// Which file of which sandbox, as it stands in an address, still encoded: names are bytes, and need
/// not be text.
pub(crate) struct FilePath {
    sandbox: String,
    encoded: String,
}

impl FromRequestParts<App> for FilePath {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Infallible> {
        let path = parts.uri.path();
        let (before, encoded) = path.split_once("/files/").unwrap_or((path, ""));
        let sandbox = before.rsplit('/').next().unwrap_or_default();
        Ok(Self {
            sandbox: sandbox.to_owned(),
            encoded: encoded.to_owned(),
        })
    }
}

/// Viewers change no files; of a sandbox that they may not see they do not learn that it is there.
async fn may_write(app: &App, access: &Access, sandbox: SandboxId) -> Result<(), ApiError> {
    if access.may(Permission::Write) {
        return Ok(());
    }
    let lease = app.store().lease_of(access, sandbox).await?;
    lease.ok_or_else(|| ApiError::not_found("sandbox"))?;
    Err(ApiError::refused(
        "role",
        "a viewer changes no files",
        "ask an admin of the workspace for the role of an editor",
    ))
}

/// Who takes room of the spool.
fn spooler(access: &Access) -> String {
    format!("{:?} {:?}", access.user(), access.api_key())
}

/// Writes a body into a file that nobody else can open.
async fn spool(
    app: &App,
    access: &Access,
    length: Option<u64>,
    body: Body,
    limit: u64,
) -> Result<Spooled, ApiError> {
    // More than was announced does not come: HTTP holds a body to its length.
    let expected = length.unwrap_or(limit).min(limit);
    let spooled = app.spool().begin(spooler(access), expected)?;
    let mut out = spooled.open().map_err(SpoolError::from)?;
    let mut stream = body.into_data_stream();
    let mut taken = 0;
    while let Some(part) = stream.next().await {
        let part =
            part.map_err(|_| ApiError::invalid("the upload broke off", "send the file again"))?;
        taken += part.len() as u64;
        if taken > limit {
            return Err(ApiError::too_large(
                format!("the file is over the limit of {limit} bytes for one file"),
                "send a smaller file, or ask a system admin for a larger limit",
            ));
        }
        out.write_all(&part).await.map_err(SpoolError::from)?;
    }
    out.flush().await.map_err(SpoolError::from)?;
    Ok(spooled)
}

impl From<SpoolError> for ApiError {
    fn from(error: SpoolError) -> Self {
        match &error {
            SpoolError::Full => Self {
                status: StatusCode::SERVICE_UNAVAILABLE,
                code: "busy",
                message: error.to_string(),
                fix: "try again in a moment".into(),
                details: serde_json::json!({}),
            },
            SpoolError::Disk(_) => {
                tracing::error!(error = chain(&error), "a file on its way");
                Self::internal()
            }
        }
    }
}

/// Fetches a file, as an attachment.
#[utoipa::path(get, path = "/api/v1/sandboxes/{sandbox}/files/{*path}", tag = "files",
    params(("sandbox" = String, Path, description = "Its id"),
        ("path" = String, Path, description = "Where, relative to the workspace folder")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, description = "Its bytes", body = inline(FileBytes),
        content_type = "application/octet-stream"), Errors))]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path: FilePath,
) -> Result<Response, ApiError> {
    let sandbox = sandbox_id(&path.sandbox)?;
    let access = caller
        .access_to(&app, sandbox, Some(KeyScope::FilesRead))
        .await?;
    let name = file_name(&path.encoded)?;
    let (agent, _) = app.files_of(&access, sandbox).await?;
    let stat = agent.stat(&name).await.map_err(SandboxError::from)?;
    // Into a file first: what arrives is only known to be whole when all of it is there.
    let spooled = app.spool().begin(spooler(&access), stat.bytes)?;
    let mut out = spooled.open().map_err(SpoolError::from)?;
    agent
        .get(&name, &mut out, stat.bytes)
        .await
        .map_err(SandboxError::from)?;
    out.flush().await.map_err(SpoolError::from)?;
    let parts = tokio_util::io::ReaderStream::new(spooled.open().map_err(SpoolError::from)?);
    // Its room is taken until it has been read.
    let stream = parts.inspect(move |_| {
        let _ = &spooled;
    });
    let headers = download(&name.encoded(), stat.bytes);
    Ok((headers, Body::from_stream(stream)).into_response())
}

/// Deletes a file, a link or an empty folder.
#[utoipa::path(delete, path = "/api/v1/sandboxes/{sandbox}/files/{*path}", tag = "files",
    params(("sandbox" = String, Path, description = "Its id"),
        ("path" = String, Path, description = "Where, relative to the workspace folder")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 204), Errors))]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    path: FilePath,
) -> Result<StatusCode, ApiError> {
    let sandbox = sandbox_id(&path.sandbox)?;
    let access = caller
        .access_to(&app, sandbox, Some(KeyScope::FilesWrite))
        .await?;
    may_write(&app, &access, sandbox).await?;
    let name = file_name(&path.encoded)?;
    app.delete_file(&access, sandbox, &name).await?;
    Ok(StatusCode::NO_CONTENT)
}
