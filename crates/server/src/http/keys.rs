//! API keys.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{Path, State};
use glovebox_protocol::file::escape_for_display;
use glovebox_protocol::ids::ApiKeyId;
use glovebox_store::KeyScope;
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answers::{Errors, Page};
use super::body::JsonObject;
use super::caller::SignedIn;
use super::error::ApiError;
use super::views::ApiKeyView;
use super::workspaces::workspace_id;
use crate::app::App;
use crate::app::account::KeyError;

/// Lists one's own keys of a workspace; whoever manages it sees all.
#[utoipa::path(get, path = "/api/v1/workspaces/{workspace}/api-keys", tag = "api keys",
    params(("workspace" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = Page<ApiKeyView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    signed_in: SignedIn,
    Path(workspace): Path<String>,
) -> Result<Json<Page<ApiKeyView>>, ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    let keys = app.api_keys(&access).await?;
    Ok(Json(Page {
        items: keys.into_iter().map(ApiKeyView::from).collect(),
        next_cursor: None,
    }))
}

/// A key to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateApiKey {
    name: String,
    /// Among `code_execution:run`, `files:read`, `files:write`, `artifacts:read`,
    /// `threads:read`, `threads:write`, `knowledge:read`, `knowledge:write`.
    #[serde(default)]
    #[schema(required, min_items = 1)]
    scopes: Vec<String>,
}

/// What a key is to be good for, each once.
fn scopes(names: &[String]) -> Result<Vec<KeyScope>, ApiError> {
    let mut scopes = BTreeSet::new();
    for name in names {
        let scope: KeyScope = name.parse().map_err(|_| {
            let shown: String = name.chars().take(64).collect();
            let shown = escape_for_display(shown.as_bytes());
            ApiError::invalid(format!("there is no scope `{shown}`"), all_scopes())
        })?;
        scopes.insert(scope);
    }
    Ok(scopes.into_iter().collect())
}

/// What to do about a scope that is missing or unknown.
fn all_scopes() -> String {
    let names: Vec<_> = KeyScope::ALL.iter().map(|scope| scope.as_str()).collect();
    format!("choose among {}", names.join(", "))
}

/// A key that was just made.
#[derive(Serialize, ToSchema)]
pub(crate) struct NewApiKeyView {
    id: String,
    /// To be sent as `Authorization: Bearer …`. It is shown this once.
    token: String,
}

/// Makes a key that acts as the person that is signed in.
#[utoipa::path(post, path = "/api/v1/workspaces/{workspace}/api-keys", tag = "api keys",
    params(("workspace" = String, Path, description = "Its id")), request_body = CreateApiKey,
    security(("session" = [])), responses((status = 201, body = NewApiKeyView), Errors))]
pub(crate) async fn create(
    State(app): State<App>,
    signed_in: SignedIn,
    Path(workspace): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<CreateApiKey>>,
) -> Result<(StatusCode, Json<NewApiKeyView>), ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    let scopes = scopes(&body.scopes)?;
    let (id, token) = app
        .create_api_key(&signed_in.actor, &access, &body.name, scopes)
        .await?;
    let view = NewApiKeyView {
        id: id.to_string(),
        token: token.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Revokes a key.
#[utoipa::path(delete, path = "/api/v1/workspaces/{workspace}/api-keys/{key}", tag = "api keys",
    params(("workspace" = String, Path, description = "Its id"),
        ("key" = String, Path, description = "The key's id")),
    security(("session" = [])), responses((status = 204), Errors))]
pub(crate) async fn revoke(
    State(app): State<App>,
    signed_in: SignedIn,
    Path((workspace, key)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    let access = signed_in.access(&app, workspace_id(&workspace)?).await?;
    let id: ApiKeyId = key.parse().map_err(|_| ApiError::not_found("API key"))?;
    app.revoke_api_key(&signed_in.actor, &access, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

impl From<KeyError> for ApiError {
    fn from(error: KeyError) -> Self {
        let message = error.to_string();
        match error {
            KeyError::Name => Self::invalid(message, "give another one"),
            KeyError::NoScope => Self::invalid(message, all_scopes()),
            KeyError::Forbidden => {
                Self::forbidden(message, "ask an admin of the workspace for the role editor")
            }
            KeyError::NoWorkspace(_) => Self::not_found("workspace"),
            KeyError::NotFound => Self::not_found("API key"),
            KeyError::Store(error) => error.into(),
        }
    }
}
