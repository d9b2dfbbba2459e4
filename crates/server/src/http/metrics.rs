//! The metrics, at an address of their own.
//!
//! Nobody signs in there, and so it is no route of the API: behind a program that does TLS, every
//! request to the API comes from this machine, and a route that is open to this machine would be
//! open to all.

use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::app::App;
use crate::metrics;

/// The one route of the address for metrics.
pub fn metrics_router(app: App) -> Router {
    Router::new()
        .route("/metrics", get(show))
        .fallback(|| async { (StatusCode::NOT_FOUND, "The metrics are at /metrics.\n") })
        .with_state(app)
}

async fn show(State(app): State<App>) -> impl IntoResponse {
    let headers = [
        (CONTENT_TYPE, metrics::CONTENT_TYPE),
        (CACHE_CONTROL, "no-store"),
    ];
    (headers, app.measured().await)
}
