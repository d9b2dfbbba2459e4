//! The first run.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::HeaderMap;
use http::header::USER_AGENT;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::answers::Errors;
use super::body::JsonObject;
use super::caller::From;
use super::error::ApiError;
use super::session::{SessionDocument, signed_in};
use crate::app::App;
use crate::app::setup::FirstAdmin;
use crate::app::users::UserError;
use crate::auth::PasswordError;

/// How far an installation is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SetupState {
    /// Whether nobody looks after it yet.
    needs_setup: bool,
}

/// The first administrator.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetUp {
    /// What the link that the server printed has after `#token=`.
    token: String,
    email: String,
    name: String,
    /// 12 characters at least.
    password: String,
}

/// Says whether the first administrator is still to be made.
#[utoipa::path(get, path = "/api/v1/setup", tag = "setup",
    responses((status = 200, body = SetupState), Errors))]
pub(crate) async fn state(State(app): State<App>) -> Result<Json<SetupState>, ApiError> {
    let needs_setup = app.needs_setup().await?;
    Ok(Json(SetupState { needs_setup }))
}

/// Makes the first administrator and signs it in.
#[utoipa::path(post, path = "/api/v1/setup", tag = "setup", request_body = SetUp,
    responses((status = 200, body = SessionDocument), Errors))]
pub(crate) async fn set_up(
    State(app): State<App>,
    From(actor): From,
    headers: HeaderMap,
    Json(JsonObject(body)): Json<JsonObject<SetUp>>,
) -> Result<Response, ApiError> {
    let first = FirstAdmin {
        email: body.email,
        name: body.name,
        password: Zeroizing::new(body.password),
    };
    let id = app.set_up(actor.clone(), &body.token, first).await?;
    let user = app.store().user(id).await?.ok_or_else(ApiError::internal)?;
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let token = app
        .open_session(actor, &user, agent.unwrap_or_default())
        .await?;
    Ok(signed_in(&app, user, &token).await?.into_response())
}

impl std::convert::From<UserError> for ApiError {
    fn from(error: UserError) -> Self {
        let message = error.to_string();
        match error {
            UserError::NotFound => Self::not_found("user"),
            UserError::NoWorkspace => Self::not_found("workspace"),
            UserError::Link => Self::refused(
                "setup_link",
                message,
                "start the server again: it prints a new link while there is no administrator",
            ),
            UserError::LastAdmin => Self::conflict(
                "last_system_admin",
                message,
                "make somebody else a system admin first",
            ),
            UserError::WrongPassword => Self::refused(
                "wrong_password",
                message,
                "give the password that you signed in with",
            ),
            UserError::Email => Self::invalid(message, "write it as name@example.com"),
            UserError::Name => Self::invalid(message, "give one of that length"),
            UserError::TooMany => {
                Self::too_many(message, "wait a quarter of an hour and try again")
            }
            UserError::Password(error) => error.into(),
            UserError::Store(error) => error.into(),
        }
    }
}

impl std::convert::From<PasswordError> for ApiError {
    fn from(error: PasswordError) -> Self {
        let message = error.to_string();
        match error {
            PasswordError::Length => Self::invalid(message, "choose another password"),
            PasswordError::Busy => Self::too_many(message, "try again in a moment"),
            PasswordError::Hash => {
                tracing::error!("a password could not be hashed");
                Self::internal()
            }
        }
    }
}
