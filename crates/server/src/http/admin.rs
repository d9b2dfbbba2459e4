//! What system admins look after: users, workspaces, live sandboxes, the audit log. To everybody
//! else none of it is there.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{AuditId, ProfileId, SandboxId, UserId, WorkspaceId};
use glovebox_store::{AuditFilter, Role};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use zeroize::Zeroizing;

use super::answers::{Errors, MAX_PAGE, Page, PageQuery, PageSize};
use super::body::JsonObject;
use super::caller::SystemAdmin;
use super::error::ApiError;
use super::members::RoleName;
use super::sandboxes::sandbox_id;
use super::views::{AuditView, QuotasView, SandboxView, UserView, WorkspaceView};
use super::workspaces::workspace_id;
use crate::app::App;
use crate::app::users::{Person, UserChanges};
use crate::app::workspaces::WorkspaceChanges;

/// Most entries of one export.
const MAX_EXPORT: u32 = 100_000;

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
    if let Some(id) = workspace {
        let found = app.store().workspace(id).await?;
        found.ok_or_else(|| ApiError::not_found("workspace"))?;
    }
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

/// What is to be changed of a workspace.
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
    #[schema(value_type = Option<QuotasView>)]
    quotas: Option<JsonObject<QuotasView>>,
    /// A profile of its own; the empty text takes it away.
    #[serde(default)]
    profile_id: Option<String>,
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
    let profile = match body.profile_id.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(text) => {
            let id: ProfileId = text.parse().map_err(|_| ApiError::not_found("profile"))?;
            Some(Some(id))
        }
    };
    let changes = WorkspaceChanges {
        name: body.name,
        code_execution: body.code_execution,
        quotas: body.quotas.map(|JsonObject(quotas)| quotas.into()),
        profile,
    };
    let workspace = app
        .change_workspace(&admin.actor, id, body.version, changes)
        .await?;
    Ok(Json(workspace.into()))
}

/// A sandbox that is there, with whose it is.
#[derive(Serialize, ToSchema)]
pub(crate) struct LiveSandboxView {
    #[serde(flatten)]
    sandbox: SandboxView,
    /// The address of the person; nothing for a service's.
    user_email: Option<String>,
    workspace_name: String,
    profile_name: String,
}

/// Lists all sandboxes that are not gone.
#[utoipa::path(get, path = "/api/v1/admin/sandboxes", tag = "admin",
    security(("session" = [])), responses((status = 200, body = Page<LiveSandboxView>), Errors))]
pub(crate) async fn sandboxes(
    State(app): State<App>,
    _: SystemAdmin,
) -> Result<Json<Page<LiveSandboxView>>, ApiError> {
    let live = app.store().live_leases_with_names().await?;
    let view =
        |(lease, names): (glovebox_store::Lease, glovebox_store::LeaseNames)| LiveSandboxView {
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

/// Ends anybody's sandbox.
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

/// Which entries of the audit log.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// The beginning of the action, such as `profile.`.
    action: Option<String>,
    /// A part of the actor's name.
    actor: Option<String>,
    /// Not before this time.
    since: Option<DateTime<Utc>>,
    /// Before this time.
    until: Option<DateTime<Utc>>,
    /// The `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many at most, from 1 to 500.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 500)]
    limit: Option<PageSize>,
}

impl AuditQuery {
    fn filter(&self) -> Result<(AuditFilter, PageQuery), ApiError> {
        let page = PageQuery {
            cursor: self.cursor.clone(),
            limit: self.limit,
        };
        let before: Option<AuditId> = page.after()?;
        let filter = AuditFilter {
            action: self.action.clone(),
            actor: self.actor.clone(),
            since: self.since,
            until: self.until,
            before,
        };
        Ok((filter, page))
    }
}

/// Lists entries of the audit log, the newest first.
#[utoipa::path(get, path = "/api/v1/admin/audit", tag = "admin", params(AuditQuery),
    security(("session" = [])), responses((status = 200, body = Page<AuditView>), Errors))]
pub(crate) async fn audit(
    State(app): State<App>,
    _: SystemAdmin,
    Query(query): Query<AuditQuery>,
) -> Result<Json<Page<AuditView>>, ApiError> {
    let (filter, page) = query.filter()?;
    let entries = app.store().audit(&filter, page.fetch()).await?;
    let id = |entry: &glovebox_store::AuditEntry| entry.id.to_string();
    Ok(Json(page.page(entries, id, AuditView::from)))
}

/// In which form the audit log is exported.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ExportForm {
    Csv,
    Json,
}

/// Exports the audit log, at most 100 000 entries, with the same filter as the list.
#[utoipa::path(get, path = "/api/v1/admin/audit/export/{form}", tag = "admin",
    params(("form" = ExportForm, Path, description = "`csv` or `json`"), AuditQuery),
    security(("session" = [])),
    responses((status = 200, description = "The entries, in the form that was asked for",
        content((String = "text/csv"), (Vec<AuditView> = "application/json"))), Errors))]
pub(crate) async fn export_audit(
    State(app): State<App>,
    _: SystemAdmin,
    Path(form): Path<ExportForm>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, ApiError> {
    let (mut filter, _) = query.filter()?;
    let mut views: Vec<AuditView> = Vec::new();
    while views.len() < MAX_EXPORT as usize {
        let entries = app.store().audit(&filter, MAX_PAGE).await?;
        let Some(last) = entries.last() else { break };
        filter.before = Some(last.id);
        views.extend(entries.into_iter().map(AuditView::from));
    }
    let (kind, name, body) = match form {
        ExportForm::Json => {
            let body = serde_json::to_string_pretty(&views).map_err(|_| ApiError::internal())?;
            ("application/json", "audit.json", body)
        }
        ExportForm::Csv => ("text/csv; charset=utf-8", "audit.csv", csv(&views)),
    };
    let disposition = format!("attachment; filename=\"{name}\"");
    let headers = [
        ("content-type", kind.to_owned()),
        ("content-disposition", disposition),
    ];
    Ok((headers, body).into_response())
}

fn csv(views: &[AuditView]) -> String {
    let mut text = String::from(
        "at,actor_kind,actor,address,action,object_kind,object_id,object,workspace_id,fields,request_id\r\n",
    );
    for view in views {
        let cells = [
            view.at.to_rfc3339(),
            view.actor_kind.clone(),
            view.actor.clone(),
            view.address.clone(),
            view.action.clone(),
            view.object_kind.clone(),
            view.object_id.clone().unwrap_or_default(),
            view.object.clone(),
            view.workspace_id.clone().unwrap_or_default(),
            view.fields.join(" "),
            view.request_id.clone(),
        ];
        let cells: Vec<_> = cells.iter().map(|cell| cell_of(cell)).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

/// A cell that no spreadsheet takes for a formula.
fn cell_of(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guarded = if is_formula {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    format!("\"{}\"", guarded.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_text_whatever_is_in_it() {
        assert_eq!(cell_of("a,b"), "\"a,b\"");
        assert_eq!(cell_of("say \"x\""), "\"say \"\"x\"\"\"");
        assert_eq!(cell_of("=1+1"), "\"'=1+1\"");
    }
}
