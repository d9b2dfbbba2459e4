//! One's own account.

use axum::Json;
use axum::extract::{Path, State};
use glovebox_protocol::ids::SessionId;
use http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::answers::{Errors, Page};
use super::body::JsonObject;
use super::caller::SignedIn;
use super::error::ApiError;
use super::views::SessionView;
use crate::app::App;

/// Lists the sessions of the person that is signed in.
#[utoipa::path(get, path = "/api/v1/account/sessions", tag = "account",
    security(("session" = [])), responses((status = 200, body = Page<SessionView>), Errors))]
pub(crate) async fn sessions(
    State(app): State<App>,
    signed_in: SignedIn,
) -> Result<Json<Page<SessionView>>, ApiError> {
    let sessions = app.store().sessions_of(signed_in.user.id).await?;
    let view = |session| SessionView::of(session, &signed_in.session);
    Ok(Json(Page {
        items: sessions.into_iter().map(view).collect(),
        next_cursor: None,
    }))
}

/// Ends one of one's own sessions.
#[utoipa::path(delete, path = "/api/v1/account/sessions/{session}", tag = "account",
    params(("session" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 204), Errors))]
pub(crate) async fn end_session(
    State(app): State<App>,
    signed_in: SignedIn,
    Path(session): Path<String>,
) -> Result<StatusCode, ApiError> {
    let unknown = || ApiError::not_found("session");
    let id: SessionId = session.parse().map_err(|_| unknown())?;
    if app
        .end_session(&signed_in.actor, &signed_in.user, id)
        .await?
    {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(unknown())
    }
}

/// A new password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangePassword {
    present: String,
    /// 12 characters at least.
    new: String,
}

/// Changes one's own password and ends one's other sessions.
#[utoipa::path(post, path = "/api/v1/account/password", tag = "account",
    request_body = ChangePassword, security(("session" = [])),
    responses((status = 204), Errors))]
pub(crate) async fn change_password(
    State(app): State<App>,
    signed_in: SignedIn,
    Json(JsonObject(body)): Json<JsonObject<ChangePassword>>,
) -> Result<StatusCode, ApiError> {
    let SignedIn {
        user,
        session,
        actor,
    } = &signed_in;
    let (present, new) = (Zeroizing::new(body.present), Zeroizing::new(body.new));
    app.change_password(actor, user, session, present, new)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
