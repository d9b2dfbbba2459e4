//! What system admins look after: users, workspaces, live sandboxes. To everybody else none of it is
//! there.

use axum::Json;
use axum::extract::{Path, Query, State};
use glovebox_protocol::ids::{ProfileId, SandboxId, UserId, WorkspaceId};
use glovebox_store::Role;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::answers::{Errors, Page, PageQuery};
use super::body::{JsonObject, given};
use super::caller::SystemAdmin;
use super::error::ApiError;
use super::members::RoleName;
use super::sandboxes::sandbox_id;
use super::views::{ChangeQuotas, SandboxView, UserView, WorkspaceView};
use super::workspaces::workspace_id;
use crate::app::App;
use crate::app::users::{Person, UserChanges};
use crate::app::workspaces::WorkspaceChanges;

/// Lists all users.
#[utoipa::path(get, path = "/api/v1/admin/users", tag = "admin", params(PageQuery),
    security(("session" = [])), responses((status = 200, body = Page<UserView>), Errors))]
pub(crate) async fn users(
    State(app): State<App>,
    _: SystemAdmin,
    Query(page): Query<PageQuery>,
) -> Result<Json<Page<UserView>>, ApiError> {
    let users = app.store().users(page.after()?, page.fetch()).await?;
    let id = |user: &glovebox_store::User| user.id.to_string();
    Ok(Json(page.page(users, id, UserView::from)))
}

/// A user to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateUser {
    email: String,
    name: String,
    /// 12 characters at least; the person is told it and can change it.
    password: String,
    #[serde(default)]
    is_system_admin: bool,
    /// A workspace that it belongs to at once.
    #[serde(default)]
    workspace_id: Option<String>,
    /// As what.
    #[serde(default)]
    role: Option<RoleName>,
}

/// Makes a user.
#[utoipa::path(post, path = "/api/v1/admin/users", tag = "admin", request_body = CreateUser,
    security(("session" = [])), responses((status = 201, body = UserView), Errors))]
pub(crate) async fn create_user(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Json(JsonObject(body)): Json<JsonObject<CreateUser>>,
) -> Result<(StatusCode, Json<UserView>), ApiError> {
    let workspace = body.workspace_id.as_deref().map(workspace_id).transpose()?;
    let role = body.role.map_or(Role::Editor, Role::from);
    let person = Person {
        email: body.email,
        name: body.name,
        password: Zeroizing::new(body.password),
        is_system_admin: body.is_system_admin,
        membership: workspace.map(|id| (id, role)),
    };
    let user = app.create_user(&admin.actor, person).await?;
    Ok((StatusCode::CREATED, Json(user.into())))
}

/// What is to be changed of a user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeUser {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    is_system_admin: Option<bool>,
    #[serde(default)]
    is_disabled: Option<bool>,
}

/// Changes a user.
#[utoipa::path(patch, path = "/api/v1/admin/users/{user}", tag = "admin",
    params(("user" = String, Path, description = "Its id")), request_body = ChangeUser,
    security(("session" = [])), responses((status = 200, body = UserView), Errors))]
pub(crate) async fn change_user(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(user): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<ChangeUser>>,
) -> Result<Json<UserView>, ApiError> {
    let id: UserId = user.parse().map_err(|_| ApiError::not_found("user"))?;
    let changes = UserChanges {
        name: body.name,
        is_system_admin: body.is_system_admin,
        is_disabled: body.is_disabled,
    };
    let user = app.change_user(&admin.actor, id, changes).await?;
    Ok(Json(user.into()))
}

/// Lists all workspaces.
#[utoipa::path(get, path = "/api/v1/admin/workspaces", tag = "admin", params(PageQuery),
    security(("session" = [])), responses((status = 200, body = Page<WorkspaceView>), Errors))]
pub(crate) async fn workspaces(
    State(app): State<App>,
    _: SystemAdmin,
    Query(page): Query<PageQuery>,
) -> Result<Json<Page<WorkspaceView>>, ApiError> {
    let all = app.store().workspaces(page.after()?, page.fetch()).await?;
    let id = |workspace: &glovebox_store::Workspace| workspace.id.to_string();
    Ok(Json(page.page(all, id, WorkspaceView::from)))
}

/// A workspace to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateWorkspace {
    name: String,
    /// The user id of its owner; whoever makes it where nobody is named.
    #[serde(default)]
    owner_id: Option<String>,
}

/// Makes a workspace. No code runs in it until it is switched on.
#[utoipa::path(post, path = "/api/v1/admin/workspaces", tag = "admin",
    request_body = CreateWorkspace, security(("session" = [])),
    responses((status = 201, body = WorkspaceView), Errors))]
pub(crate) async fn create_workspace(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Json(JsonObject(body)): Json<JsonObject<CreateWorkspace>>,
) -> Result<(StatusCode, Json<WorkspaceView>), ApiError> {
    let owner = match body.owner_id.as_deref() {
        None => admin.user.id,
        Some(text) => text.parse().map_err(|_| ApiError::not_found("user"))?,
    };
    let made = app
        .create_workspace(&admin.actor, &body.name, owner)
        .await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// What is to be changed of a workspace. What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeWorkspace {
    /// The version that was read.
    version: i64,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    code_execution: Option<bool>,
    #[serde(default)]
    #[schema(value_type = Option<ChangeQuotas>)]
    quotas: Option<JsonObject<ChangeQuotas>>,
    /// A profile of its own; null takes it away.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    profile_id: Option<Option<String>>,
}

/// The profile that a workspace is to have of its own; nothing for none.
fn of_its_own(text: Option<String>) -> Result<Option<ProfileId>, ApiError> {
    match text.as_deref() {
        None => Ok(None),
        Some("") => Err(ApiError::invalid(
            "profile_id is empty, which is no profile's id",
            "send the id of a profile, or null for none of its own",
        )),
        Some(text) => match text.parse() {
            Ok(id) => Ok(Some(id)),
            Err(_) => Err(ApiError::not_found("profile")),
        },
    }
}

/// Changes a workspace: its name, switch, quotas and profile.
#[utoipa::path(patch, path = "/api/v1/admin/workspaces/{workspace}", tag = "admin",
    params(("workspace" = String, Path, description = "Its id")), request_body = ChangeWorkspace,
    security(("session" = [])), responses((status = 200, body = WorkspaceView), Errors))]
pub(crate) async fn change_workspace(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(workspace): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<ChangeWorkspace>>,
) -> Result<Json<WorkspaceView>, ApiError> {
    let id: WorkspaceId = workspace_id(&workspace)?;
    let changes = WorkspaceChanges {
        name: body.name,
        code_execution: body.code_execution,
        profile: body.profile_id.map(of_its_own).transpose()?,
    };
    let JsonObject(quotas) = body.quotas.unwrap_or_default();
    let workspace = app
        .change_workspace(&admin.actor, id, body.version, changes, |present| {
            quotas.apply(present);
        })
        .await?;
    Ok(Json(workspace.into()))
}

/// A sandbox that is there, with whose it is.
#[derive(Serialize, ToSchema)]
pub(crate) struct LiveSandboxView {
    #[serde(flatten)]
    sandbox: SandboxView,
    /// What it is for: `code` for people's code, `preview` for what makes previews of files, which is
    /// nobody's.
    purpose: String,
    /// The address of the person; nothing for a service's, and for that of a preview.
    user_email: Option<String>,
    workspace_name: String,
    profile_name: String,
}

/// Lists all sandboxes that are not gone, those of previews too.
#[utoipa::path(get, path = "/api/v1/admin/sandboxes", tag = "admin",
    security(("session" = [])), responses((status = 200, body = Page<LiveSandboxView>), Errors))]
pub(crate) async fn sandboxes(
    State(app): State<App>,
    _: SystemAdmin,
) -> Result<Json<Page<LiveSandboxView>>, ApiError> {
    let live = app.store().live_leases_with_names().await?;
    let view =
        |(lease, names): (glovebox_store::Lease, glovebox_store::LeaseNames)| LiveSandboxView {
            purpose: lease.purpose.to_string(),
            sandbox: lease.into(),
            user_email: names.user_email,
            workspace_name: names.workspace,
            profile_name: names.profile,
        };
    Ok(Json(Page {
        items: live.into_iter().map(view).collect(),
        next_cursor: None,
    }))
}

/// Ends anybody's sandbox. A preview that was being made in it is begun anew, a few times.
#[utoipa::path(delete, path = "/api/v1/admin/sandboxes/{sandbox}", tag = "admin",
    params(("sandbox" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = SandboxView), Errors))]
pub(crate) async fn end_sandbox(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(sandbox): Path<String>,
) -> Result<Json<SandboxView>, ApiError> {
    let id: SandboxId = sandbox_id(&sandbox)?;
    let lease = app.end_sandbox_as_admin(&admin.actor, id).await?;
    Ok(Json(lease.into()))
}
