//! Whether the server lives, and what its API is.

use std::future::Future;

use axum::Json;
use axum::extract::State;
use axum::routing::{MethodRouter, get};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::OpenApi;

use super::answers::Errors;
use super::error::ApiError;
use crate::app::App;

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

/// Whether the server can work: its database answers.
#[utoipa::path(get, path = "/readyz", tag = "health",
    responses((status = 200, body = Alive), Errors))]
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Alive>, ApiError> {
    if let Err(error) = app.store().ping().await {
        tracing::warn!(error = crate::failure::chain(&error), "not ready");
        return Err(ApiError::runtime_unavailable(
            "the database does not answer",
        ));
    }
    Ok(Json(Alive { status: "ok" }))
}

/// The document of the API.
pub(crate) fn openapi(document: OpenApi) -> MethodRouter<App> {
    let document = std::sync::Arc::new(document);
    let answer = move || -> std::pin::Pin<Box<dyn Future<Output = Json<OpenApi>> + Send>> {
        let document = OpenApi::clone(&document);
        Box::pin(async move { Json(document) })
    };
    get(answer)
}
