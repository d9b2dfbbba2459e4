//! Signing in and out.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use glovebox_store::{Token, User};
use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::answers::Errors;
use super::body::JsonObject;
use super::caller::{From, SignedIn, cookie_name};
use super::error::ApiError;
use super::views::UserView;
use crate::app::App;
use crate::app::account::SignInError;

/// How long a browser keeps the cookie, in seconds.
const COOKIE_SECONDS: u32 = 14 * 24 * 3600;

/// A workspace of the person that is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MembershipView {
    pub(crate) workspace_id: String,
    pub(crate) name: String,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub(crate) role: String,
}

/// Who is signed in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionDocument {
    pub(crate) user: UserView,
    pub(crate) memberships: Vec<MembershipView>,
    /// Whether passwords travel readable over the network: the console shows a banner.
    pub(crate) is_insecure: bool,
}

/// What a person signs in with.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    email: String,
    password: String,
}

/// Says who is signed in.
#[utoipa::path(get, path = "/api/v1/session", tag = "session", security(("session" = [])),
    responses((status = 200, body = SessionDocument), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    signed_in: SignedIn,
) -> Result<Json<SessionDocument>, ApiError> {
    Ok(Json(document(&app, signed_in.user).await?))
}

/// Signs a person in; the answer sets the session's cookie.
#[utoipa::path(post, path = "/api/v1/session", tag = "session", request_body = SignIn,
    responses((status = 200, body = SessionDocument), Errors))]
pub(crate) async fn sign_in(
    State(app): State<App>,
    From(actor): From,
    headers: HeaderMap,
    Json(JsonObject(body)): Json<JsonObject<SignIn>>,
) -> Result<Response, ApiError> {
    let agent = headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok());
    let (user, token) = app
        .sign_in(
            actor,
            &body.email,
            Zeroizing::new(body.password),
            agent.unwrap_or_default(),
        )
        .await?;
    Ok(signed_in(&app, user, &token).await?.into_response())
}

/// Ends the session of this browser.
#[utoipa::path(delete, path = "/api/v1/session", tag = "session", security(("session" = [])),
    responses((status = 204), Errors))]
pub(crate) async fn sign_out(
    State(app): State<App>,
    signed_in: SignedIn,
) -> Result<impl IntoResponse, ApiError> {
    app.end_session(&signed_in.actor, &signed_in.user, signed_in.session.id)
        .await?;
    let gone = set_cookie(&app, "", 0)?;
    Ok((StatusCode::NO_CONTENT, [(SET_COOKIE, gone)]))
}

/// Who is signed in now, with the cookie that proves it from now on.
pub(super) async fn signed_in(
    app: &App,
    user: User,
    token: &Token,
) -> Result<impl IntoResponse + use<>, ApiError> {
    let cookie = set_cookie(app, token.reveal(), COOKIE_SECONDS)?;
    Ok(([(SET_COOKIE, cookie)], Json(document(app, user).await?)))
}

fn set_cookie(app: &App, value: &str, seconds: u32) -> Result<HeaderValue, ApiError> {
    let secure = if app.config().is_secure() {
        "; Secure"
    } else {
        ""
    };
    let text = format!(
        "{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}",
        cookie_name(app)
    );
    let mut header = HeaderValue::from_str(&text).map_err(|_| ApiError::internal())?;
    header.set_sensitive(true);
    Ok(header)
}

async fn document(app: &App, user: User) -> Result<SessionDocument, ApiError> {
    let memberships = app.store().memberships_of(user.id).await?;
    Ok(SessionDocument {
        user: user.into(),
        memberships: memberships
            .into_iter()
            .map(|(id, name, role)| MembershipView {
                workspace_id: id.to_string(),
                name,
                role: role.to_string(),
            })
            .collect(),
        is_insecure: app.config().insecure_http,
    })
}

impl std::convert::From<SignInError> for ApiError {
    fn from(error: SignInError) -> Self {
        let message = error.to_string();
        match error {
            SignInError::Wrong => Self {
                status: StatusCode::UNAUTHORIZED,
                code: "wrong_credentials",
                message,
                fix: "check both; an administrator can set a new password".into(),
                details: serde_json::json!({}),
            },
            SignInError::TooMany => {
                Self::too_many(message, "wait a quarter of an hour and try again")
            }
            SignInError::Password(error) => error.into(),
            SignInError::Store(error) => error.into(),
        }
    }
}
