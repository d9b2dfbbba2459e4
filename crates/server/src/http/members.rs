//! Members of a workspace and their roles.

use axum::Json;
use axum::extract::{Path, State};
use glovebox_protocol::ids::UserId;
use glovebox_store::Role;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::answers::{Errors, Page};
use super::body::JsonObject;
use super::caller::SignedIn;
use super::error::ApiError;
use super::views::MemberView;
use super::workspaces::workspace_id;
use crate::app::App;

/// What a member is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleName {
    Viewer,
    Editor,
    Admin,
    Owner,
}

impl From<RoleName> for Role {
    fn from(name: RoleName) -> Self {
        match name {
            RoleName::Viewer => Self::Viewer,
            RoleName::Editor => Self::Editor,
            RoleName::Admin => Self::Admin,
            RoleName::Owner => Self::Owner,
        }
    }
}

fn user_id(text: &str) -> Result<UserId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("member"))
}

/// Lists the members of a workspace.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace}/members", tag = "members",
    params(("workspace" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = Page<MemberView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    signed_in: SignedIn,
    Path(workspace): Path<String>,
) -> Result<Json<Page<MemberView>>, ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    let members = app.members(&access).await?;
    Ok(Json(Page {
        items: members.into_iter().map(MemberView::from).collect(),
        next_cursor: None,
    }))
}

/// A user to be made a member.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddMember {
    /// With which it signs in.
    email: String,
    role: RoleName,
}

/// Makes a user a member.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace}/members", tag = "members",
    params(("workspace" = String, Path, description = "Its id")), request_body = AddMember,
    security(("session" = [])), responses((status = 204), Errors))]
pub(crate) async fn add(
    State(app): State<App>,
    signed_in: SignedIn,
    Path(workspace): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<AddMember>>,
) -> Result<StatusCode, ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    app.add_member(&signed_in.actor, &access, &body.email, body.role.into())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Another role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeMember {
    role: RoleName,
}

/// Gives a member another role.
#[utoipa::path(patch, path = "/api/v1/workspaces/{workspace}/members/{user}", tag = "members",
    params(("workspace" = String, Path, description = "Its id"),
        ("user" = String, Path, description = "The member's user id")),
    request_body = ChangeMember,
    security(("session" = [])), responses((status = 204), Errors))]
pub(crate) async fn change(
    State(app): State<App>,
    signed_in: SignedIn,
    Path((workspace, user)): Path<(String, String)>,
    Json(JsonObject(body)): Json<JsonObject<ChangeMember>>,
) -> Result<StatusCode, ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    let role = Some(body.role.into());
    app.change_member(&signed_in.actor, &access, user_id(&user)?, role)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes a member out of a workspace; anybody may leave.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace}/members/{user}", tag = "members",
    params(("workspace" = String, Path, description = "Its id"),
        ("user" = String, Path, description = "The member's user id")),
    security(("session" = [])), responses((status = 204), Errors))]
pub(crate) async fn remove(
    State(app): State<App>,
    signed_in: SignedIn,
    Path((workspace, user)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    app.change_member(&signed_in.actor, &access, user_id(&user)?, None)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
