//! The console: its files, and its one page for every address that it has.

use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use glovebox_store::Token;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode, Uri};
use rust_embed::EmbeddedFile;

use super::error::ApiError;
use crate::app::App;

#[expect(
    clippy::disallowed_methods,
    reason = "the macro writes this, and it reads our own files"
)]
mod built {
    /// What `make console` has built. In a debug build it is read from the folder at each request.
    #[derive(rust_embed::Embed)]
    #[folder = "../../console/dist"]
    #[allow_missing = true]
    pub(super) struct Files;
}

use built::Files;

/// The page that every address of the console is.
const PAGE: &str = "index.html";

/// Stands in the page where the nonce of this answer goes.
const NONCE: &str = "__NONCE__";

/// The folder of files whose names change with what is in them.
const ASSETS: &str = "assets/";

/// What tells the scripts of workers from those of the page.
const WORKER: &str = ".worker-";

/// What a worker may do, which takes its policy from the answer that it came with: ask this server.
const WORKER_CSP: &str = "default-src 'none'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Everything that is no route of the API.
pub(crate) async fn any(State(_): State<App>, method: Method, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let is_read = matches!(method, Method::GET | Method::HEAD);
    if !is_read || path.starts_with("api/") {
        return ApiError::not_found("page or route").into_response();
    }
    match Files::get(path) {
        Some(file) if path != PAGE => asset(path, file),
        // What looks like a file and is none is not there.
        None if path.starts_with(ASSETS) => ApiError::not_found("file").into_response(),
        _ => page(),
    }
}

/// The reference of the API: a page of the console like any other, under the same policy.
pub(crate) async fn api_reference() -> Response {
    page()
}

fn asset(path: &str, file: EmbeddedFile) -> Response {
    let kind = file.metadata.mimetype().to_owned();
    let keep = if path.starts_with(ASSETS) {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [(CONTENT_TYPE, kind), (CACHE_CONTROL, keep.to_owned())];
    let mut response = (headers, file.data).into_response();
    if path.contains(WORKER) {
        let policy = HeaderValue::from_static(WORKER_CSP);
        response
            .headers_mut()
            .insert(CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The page, with a policy under which nothing runs but the console's own files.
fn page() -> Response {
    let Some(file) = Files::get(PAGE) else {
        let text = "The console was not built into this program: run `make console` and build it again. The API is at /api/v1.\n";
        return (StatusCode::NOT_FOUND, text).into_response();
    };
    let Ok(nonce) = Token::random("") else {
        return ApiError::internal().into_response();
    };
    let nonce = nonce.reveal();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; \
         font-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-src 'self'; \
         base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    let Ok(policy) = HeaderValue::from_str(&policy) else {
        return ApiError::internal().into_response();
    };
    let text = String::from_utf8_lossy(&file.data).replace(NONCE, nonce);
    let headers = [
        (
            CONTENT_TYPE,
            HeaderValue::from_static("text/html; charset=utf-8"),
        ),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (CONTENT_SECURITY_POLICY, policy),
    ];
    (headers, text).into_response()
}
