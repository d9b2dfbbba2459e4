//! Sandboxes.

use axum::Json;
use axum::extract::{Path, Query, State};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::SandboxId;
use glovebox_store::{KeyScope, Lease};
use http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::answers::{Errors, Page, PageQuery, PageSize};
use super::body::JsonObject;
use super::caller::Caller;
use super::error::ApiError;
use super::views::{ClassName, SandboxView};
use super::workspaces::workspace_id;
use crate::app::App;
use crate::app::sandboxes::SandboxError;

/// What a key has to be made for to see and end sandboxes; to make one, the gate asks.
pub(super) const RUN: Option<KeyScope> = Some(KeyScope::CodeExecutionRun);

/// Reads a sandbox's id from a path; a text that is none names no sandbox.
pub(super) fn sandbox_id(text: &str) -> Result<SandboxId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("sandbox"))
}

/// Which sandboxes.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SandboxesQuery {
    /// The workspace; with an API key it is the key's own.
    workspace_id: Option<String>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

/// Lists one's own sandboxes, the newest first; whoever manages the workspace sees those of
/// services too.
#[utoipa::path(get, path = "/api/v1/sandboxes", tag = "sandboxes", params(SandboxesQuery),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = Page<SandboxView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<SandboxesQuery>,
) -> Result<Json<Page<SandboxView>>, ApiError> {
    let workspace = query
        .workspace_id
        .as_deref()
        .map(workspace_id)
        .transpose()?;
    let access = caller.access(&app, workspace, RUN).await?;
    let page = PageQuery {
        cursor: query.cursor,
        limit: query.limit,
    };
    let leases = app
        .store()
        .leases_of(&access, page.after()?, page.fetch())
        .await?;
    let id = |lease: &Lease| lease.id.to_string();
    Ok(Json(page.page(leases, id, SandboxView::from)))
}

/// A sandbox to be made.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSandbox {
    /// The workspace; with an API key it is the key's own.
    #[serde(default)]
    workspace_id: Option<String>,
    /// The profile's where nobody says.
    #[serde(default)]
    #[schema(value_type = Option<ClassName>)]
    class: Option<ResourceClass>,
}

/// Makes a sandbox and answers when it takes code.
#[utoipa::path(post, path = "/api/v1/sandboxes", tag = "sandboxes", request_body = CreateSandbox,
    security(("api_key" = []), ("session" = [])),
    responses((status = 201, body = SandboxView), Errors))]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    Json(JsonObject(body)): Json<JsonObject<CreateSandbox>>,
) -> Result<(StatusCode, Json<SandboxView>), ApiError> {
    let workspace = body.workspace_id.as_deref().map(workspace_id).transpose()?;
    let access = caller.access(&app, workspace, None).await?;
    let lease = app.create_sandbox(&access, body.class).await?;
    Ok((StatusCode::CREATED, Json(lease.into())))
}

/// Shows a sandbox: also one that has ended.
#[utoipa::path(get, path = "/api/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = SandboxView), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(sandbox): Path<String>,
) -> Result<Json<SandboxView>, ApiError> {
    let id = sandbox_id(&sandbox)?;
    let access = caller.access_to(&app, id, RUN).await?;
    let lease = app.store().lease_of(&access, id).await?;
    let lease = lease.ok_or_else(|| ApiError::not_found("sandbox"))?;
    Ok(Json(lease.into()))
}

/// Ends a sandbox: nothing of it is left when this answers.
#[utoipa::path(delete, path = "/api/v1/sandboxes/{sandbox}", tag = "sandboxes",
    params(("sandbox" = String, Path, description = "Its id")),
    security(("api_key" = []), ("session" = [])),
    responses((status = 200, body = SandboxView), Errors))]
pub(crate) async fn end(
    State(app): State<App>,
    caller: Caller,
    Path(sandbox): Path<String>,
) -> Result<Json<SandboxView>, ApiError> {
    let id = sandbox_id(&sandbox)?;
    let access = caller.access_to(&app, id, RUN).await?;
    let lease = app.end_sandbox(&access, id).await?;
    Ok(Json(lease.into()))
}

impl From<SandboxError> for ApiError {
    fn from(error: SandboxError) -> Self {
        let message = error.to_string();
        match error {
            SandboxError::Denied(denial) => denial.into(),
            SandboxError::NotFound => Self::not_found("sandbox"),
            SandboxError::Gone { .. } => {
                Self::conflict("sandbox_gone", message, "make another sandbox")
            }
            SandboxError::Store(error) => error.into(),
            SandboxError::Runtime(error) => error.into(),
        }
    }
}
