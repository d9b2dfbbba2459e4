//! Whether the server lives, and what its API is.

use axum::Json;
use axum::extract::State;
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use super::answers::Errors;
use super::error::ApiError;
use crate::app::App;
use crate::failure::chain;

/// A sign of life.
#[derive(Serialize, ToSchema)]
pub(crate) struct Alive {
    /// `ok`.
    status: &'static str,
}

/// Whether the server runs.
#[utoipa::path(get, path = "/healthz", tag = "health",
    responses((status = 200, body = Alive), Errors))]
pub(crate) async fn live() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

/// Whether the server can work: its database answers, and its disk has room.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = Alive), Errors))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Alive>, ApiError> {
    if let Err(error) = app.store().ping().await {
        tracing::warn!(error = chain(&error), "not ready");
        return Err(ApiError::database_unavailable());
    }
    if !app.has_room_for(0) {
        tracing::warn!("not ready: {}", crate::failure::NO_ROOM);
        return Err(ApiError::no_room());
    }
    Ok(Json(Alive { status: "ok" }))
}

/// The document of the API, written once: it is the same for everybody.
pub(crate) fn openapi(document: &OpenApi) -> MethodRouter<App> {
    let written = match serde_json::to_vec(document) {
        Ok(written) => Some(Bytes::from(written)),
        Err(error) => {
            tracing::error!(error = chain(&error), "writing the document of the API");
            None
        }
    };
    get(move || {
        let written = written.clone();
        async move {
            let written = written.ok_or_else(ApiError::internal)?;
            Ok::<_, ApiError>(([("content-type", "application/json")], written))
        }
    })
}
