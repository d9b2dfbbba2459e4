//! Workspaces, for their members.

use axum::Json;
use axum::extract::{Path, State};
use glovebox_protocol::ids::WorkspaceId;

use super::answers::{Errors, Page};
use super::caller::SignedIn;
use super::error::ApiError;
use super::session::MembershipView;
use super::views::CodeExecutionView;
use crate::app::App;
use crate::app::workspaces::WorkspaceError;

/// Reads a workspace's id from a path; a text that is none names no workspace.
pub(super) fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("workspace"))
}

/// Lists the workspaces of the person that is signed in.
#[utoipa::path(get, path = "/api/v1/workspaces", tag = "workspaces",
    security(("session" = [])), responses((status = 200, body = Page<MembershipView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    signed_in: SignedIn,
) -> Result<Json<Page<MembershipView>>, ApiError> {
    let memberships = app.store().memberships_of(signed_in.user.id).await?;
    Ok(Json(Page {
        items: memberships
            .into_iter()
            .map(|(id, name, role)| MembershipView {
                workspace_id: id.to_string(),
                name,
                role: role.to_string(),
            })
            .collect(),
        next_cursor: None,
    }))
}

/// Everything about code execution in a workspace: for its members, and for system admins.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace}/code-execution", tag = "workspaces",
    params(("workspace" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = CodeExecutionView), Errors))]
pub(crate) async fn code_execution(
    State(app): State<App>,
    signed_in: SignedIn,
    Path(workspace): Path<String>,
) -> Result<Json<CodeExecutionView>, ApiError> {
    let id = workspace_id(&workspace)?;
    if !signed_in.user.is_system_admin {
        signed_in.access(&app, id).await?;
    }
    Ok(Json(app.code_execution(id).await?.into()))
}

impl From<WorkspaceError> for ApiError {
    fn from(error: WorkspaceError) -> Self {
        let message = error.to_string();
        match error {
            WorkspaceError::NotFound => Self::not_found("workspace or member"),
            WorkspaceError::NoProfile => Self::not_found("profile"),
            WorkspaceError::Name => Self::invalid(message, "give a shorter one"),
            WorkspaceError::Quota { .. } => Self::invalid(message, "choose a smaller number"),
            WorkspaceError::Forbidden => Self::forbidden(
                message,
                "ask one of them; nobody gives or takes more than they have themselves",
            ),
            WorkspaceError::NoUser => Self::conflict(
                "no_such_user",
                message,
                "ask a system admin to make the user first",
            ),
            WorkspaceError::IsMember(_) => Self::conflict(
                "is_member",
                message,
                "give it another role in the list of members",
            ),
            WorkspaceError::LastOwner => {
                Self::conflict("last_owner", message, "make somebody else an owner first")
            }
            WorkspaceError::Store(error) => error.into(),
        }
    }
}
