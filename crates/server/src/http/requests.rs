//! What is true of every request: an id, a line in the log, headers that keep browsers from
//! harm, no change on the word of another site, and one shape of errors.

use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use glovebox_protocol::file::escape_for_display;
use http::header::{
    CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, SET_COOKIE,
};
use http::{Method, StatusCode};
use tracing::Instrument as _;
use uuid::Uuid;

use super::error::{ApiError, ErrorBody};
use crate::app::App;

/// The header that carries a request's id, in answers.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What a browser says of where a request comes from.
const SEC_FETCH_SITE: &str = "sec-fetch-site";

/// What no answer may do: run, load or show anything.
const CSP: &str = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

/// Who sent a request, as far as the connection tells.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    /// The request's id.
    pub(crate) request_id: String,
    /// The network address.
    pub(crate) address: IpAddr,
}

/// How much is read of what the web framework says of a request.
const MAX_REFUSAL: usize = 4096;

/// Wraps every route.
pub(crate) async fn every_request(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
    next: Next,
) -> Response {
    let begun = Instant::now();
    let origin = Origin {
        request_id: Uuid::now_v7().to_string(),
        address: address(&app, peer.ip(), request.headers()),
    };
    let method = request.method().clone();
    // Without the query, which may hold what people look for.
    let path = request.uri().path().to_owned();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let refused = from_another_site(&method, request.headers());
    request.extensions_mut().insert(origin.clone());
    let response = match refused {
        Some(error) => error.into_response(),
        None => {
            // What is logged on the way stands under the id that the answer tells.
            let span = tracing::error_span!("request", request_id = origin.request_id);
            next.run(request).instrument(span).await
        }
    };
    let mut response = finish(response, &origin.request_id).await;
    guard(&app, &path, &mut response);
    let took = begun.elapsed();
    let route = route.as_ref().map(MatchedPath::as_str);
    app.metrics()
        .answered(route, &method, response.status(), took);
    tracing::info!(
        request_id = origin.request_id,
        %method,
        path,
        status = response.status().as_u16(),
        took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        address = %origin.address,
        "request"
    );
    response
}

/// The caller's address: the connection's, or what a trusted program in front says it is.
fn address(app: &App, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    let trusted = &app.config().trusted_proxies;
    if !trusted.contains(&peer) {
        return peer;
    }
    let forwarded = headers.get_all("x-forwarded-for").iter();
    let said: Vec<&str> = forwarded
        .map(|value| value.to_str().unwrap_or_default())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    // The last one that no trusted program has added is the caller. What cannot be read ends the
    // search: whoever is named before it may have been named by the caller.
    let mut nearest = peer;
    for word in said.iter().rev() {
        let Some(address) = address_of(word) else {
            return nearest;
        };
        nearest = address;
        if !trusted.contains(&address) {
            return address;
        }
    }
    nearest
}

/// The address in a word of a list: with a port or without, one of version 4 as itself.
fn address_of(word: &str) -> Option<IpAddr> {
    let plain = word.trim_start_matches('[').trim_end_matches(']');
    let address = plain
        .parse::<IpAddr>()
        .or_else(|_| word.parse::<SocketAddr>().map(|with_port| with_port.ip()));
    address.ok().map(|address| address.to_canonical())
}

/// A change that a browser sends with somebody's cookie has to come from our own pages.
fn from_another_site(method: &Method, headers: &HeaderMap) -> Option<ApiError> {
    let is_safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if is_safe || !headers.contains_key(COOKIE) {
        return None;
    }
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let site = headers
        .get(SEC_FETCH_SITE)
        .and_then(|value| value.to_str().ok());
    let is_own = match (site, text(ORIGIN)) {
        (Some(site), _) => matches!(site, "same-origin" | "none"),
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text(HOST)
        }
        // No browser: they send one of the two with every change.
        (None, None) => true,
    };
    (!is_own).then(|| {
        ApiError::refused(
            "cross_site",
            "this request comes from a page of another site",
            "use the console at its own address",
        )
    })
}

/// Gives an error its body, and every answer the request's id.
async fn finish(mut response: Response, request_id: &str) -> Response {
    let status = response.status();
    let error = response.extensions_mut().remove::<ApiError>();
    let is_ours = error.is_some();
    let error = match error {
        Some(error) => Some(error),
        None => plain(status, &mut response).await,
    };
    if let Some(error) = error {
        let body = ErrorBody {
            code: error.code.to_owned(),
            message: error.message,
            fix: error.fix,
            details: error.details,
            request_id: request_id.to_owned(),
        };
        let cookie = response
            .headers_mut()
            .remove(SET_COOKIE)
            .filter(|_| is_ours);
        response = (error.status, axum::Json(body)).into_response();
        if let Some(cookie) = cookie {
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
    }
    if let Ok(id) = HeaderValue::from_str(request_id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// What the web framework refuses by itself, in our words.
async fn plain(status: StatusCode, response: &mut Response) -> Option<ApiError> {
    let error = match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            let said = std::mem::take(response.body_mut());
            let said = axum::body::to_bytes(said, MAX_REFUSAL).await;
            let said = said.map(|said| String::from_utf8_lossy(&said).into_owned());
            let what = said.as_deref().map_or(None, fault).unwrap_or_default();
            ApiError::invalid(
                format!("the request is not of the form that this call takes{what}"),
                "compare it with the reference at /api/v1/docs",
            )
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            ApiError::too_large("the request is larger than this call takes", "send less")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError {
            status,
            code: "media_type",
            message: "the body is of another kind than this call takes".into(),
            fix: "send JSON with the header `Content-Type: application/json`".into(),
            details: serde_json::json!({}),
        },
        StatusCode::INTERNAL_SERVER_ERROR => ApiError::internal(),
        _ => return None,
    };
    Some(error)
}

/// Which part of a request the web framework's refusal is about. Names of fields only: values may
/// be secrets.
fn fault(said: &str) -> Option<String> {
    let (_, what) = said
        .split_once("target type: ")
        .or_else(|| said.split_once("query string: "))?;
    for (words, meaning) in [
        ("unknown field `", "it knows no field"),
        ("missing field `", "it lacks the field"),
    ] {
        if let Some((_, name)) = what.split_once(words) {
            let name = name.split('`').next()?;
            return Some(format!(
                "; {meaning} `{}`",
                escape_for_display(name.as_bytes())
            ));
        }
    }
    let (path, _) = what.split_once(": ")?;
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_.[]".contains(c);
    (!path.is_empty() && path != "." && path.chars().all(is_path))
        .then(|| format!("; look at `{path}`"))
}

fn guard(app: &App, path: &str, response: &mut Response<Body>) {
    let headers = response.headers_mut();
    let fixed = [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        // Or a browser asks for the host of each link that it shows, before anybody clicks on one.
        ("x-dns-prefetch-control", "off"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    // A handler may say otherwise: the one that answers with a page for a frame of ours.
    if !headers.contains_key("x-frame-options") {
        headers.insert("x-frame-options", HeaderValue::from_static("DENY"));
    }
    let policy = HeaderName::from_static("content-security-policy");
    if !headers.contains_key(&policy) {
        headers.insert(policy, HeaderValue::from_static(CSP));
    }
    if path.starts_with("/api/") && !headers.contains_key("cache-control") {
        headers.insert("cache-control", HeaderValue::from_static("no-store"));
    }
    if app.config().is_secure() {
        headers.insert(
            "strict-transport-security",
            HeaderValue::from_static("max-age=31536000"),
        );
    }
    if !headers.contains_key(CONTENT_TYPE) {
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
    }
}

/// A route that has no such method.
pub(crate) async fn no_such_method() -> ApiError {
    ApiError {
        status: StatusCode::METHOD_NOT_ALLOWED,
        code: "method_not_allowed",
        message: "this route has no such method".into(),
        fix: "look at the reference at /api/v1/docs".into(),
        details: serde_json::json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(headers: &[(&'static str, &'static str)]) -> bool {
        let headers = headers.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        from_another_site(&Method::POST, &headers.collect()).is_some()
    }

    #[test]
    fn an_address_is_read_with_its_port_and_without() {
        for (word, address) in [
            ("1.2.3.4", "1.2.3.4"),
            ("1.2.3.4:5555", "1.2.3.4"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("::ffff:1.2.3.4", "1.2.3.4"),
        ] {
            assert_eq!(address_of(word), address.parse().ok(), "{word}");
        }
        assert_eq!(address_of("unknown"), None);
    }

    #[test]
    fn a_refusal_names_the_field_and_never_its_value() {
        let said = |what: &str| {
            let prefix = "Failed to deserialize the JSON body into the target type: ";
            fault(&format!("{prefix}{what} at line 1 column 9"))
        };
        let secret = "invalid type: string \"hunter2\", expected u32";
        assert_eq!(
            said(&format!("quotas.max_concurrent: {secret}")).as_deref(),
            Some("; look at `quotas.max_concurrent`")
        );
        assert_eq!(said(&format!("hun ter2: {secret}")), None);
        assert_eq!(said(secret), None);
        assert_eq!(
            said("missing field `name`").as_deref(),
            Some("; it lacks the field `name`")
        );
        assert_eq!(
            said("unknown field `\u{1b}x`, expected `name`").as_deref(),
            Some("; it knows no field `\\u{1b}x`")
        );
        assert_eq!(fault("something else"), None);
    }

    #[test]
    fn another_site_changes_nothing_with_somebodys_cookie() {
        let cookie = ("cookie", "a=b");
        assert!(refused(&[cookie, ("sec-fetch-site", "cross-site")]));
        assert!(refused(&[cookie, ("sec-fetch-site", "same-site")]));
        assert!(refused(&[
            cookie,
            ("origin", "https://evil"),
            ("host", "gb")
        ]));
        assert!(refused(&[cookie, ("origin", "null"), ("host", "gb")]));
        assert!(!refused(&[cookie, ("sec-fetch-site", "same-origin")]));
        assert!(!refused(&[cookie, ("origin", "http://gb"), ("host", "gb")]));
        assert!(!refused(&[cookie]));
        assert!(!refused(&[("sec-fetch-site", "cross-site")]));
    }
}
