//! The routes: what a verified request asks for. Each hands over to one function.

use std::net::SocketAddr;
use std::sync::Arc;

use glovebox_protocol::file::escape_for_display;
use glovebox_protocol::gateway::{AGENT, SANDBOXES};
use glovebox_protocol::ids::SandboxId;
use hyper::http::request::Parts;

use crate::auth::Caller;
use crate::body::{self, SignedBody};
use crate::error::ApiError;
use crate::reply::{self, Reply};
use crate::state::Shared;
use crate::{canary, info, lifecycle, preflight, ready, relay};

/// A verified request but for its body.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) caller: Caller,
    /// Where it came from, if that has an address.
    pub(crate) peer: Option<SocketAddr>,
}

/// Fulfils one request. A body that is left over is there afterwards; what was passed on is not.
pub(crate) async fn route(
    shared: &Arc<Shared>,
    asked: Asked<'_>,
    body: &mut Option<SignedBody>,
) -> Reply {
    let method = asked.parts.method.as_str();
    let path = asked.parts.uri.path();
    if path.starts_with(SANDBOXES) && !shared.until_adopted().await {
        return Err(ApiError::unavailable(
            "the gateway has just started and could not ask its runtime for its sandboxes yet",
        ));
    }
    if let Some(rest) = path.strip_prefix("/v1/sandboxes/") {
        let (id, rest) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let id = id
            .parse()
            .map_err(|fault: glovebox_protocol::ids::InvalidId| {
                ApiError::invalid(fault.to_string())
            })?;
        return sandbox_route(shared, asked, (id, rest), body).await;
    }
    let query = asked.parts.uri.query();
    let after = match (path, query.map(|query| query.strip_prefix("after="))) {
        (_, None) => None,
        ("/v1/sandboxes", Some(Some(after))) => Some(after),
        _ => return Err(ApiError::invalid("this route takes no such query")),
    };
    let Some(body) = body.as_mut() else {
        return Err(no_route(method, path));
    };
    if (method, path) == ("POST", "/v1/sandboxes") {
        let view = lifecycle::create(shared, body::json(body).await?).await?;
        return reply::ok(&view);
    }
    if (method, path) == ("PUT", "/v1/ready") {
        return reply::ok(&ready::keep(shared, body::json(body).await?).await?);
    }
    body::empty(body).await?;
    match (method, path) {
        ("GET", "/v1/info") => reply::ok(&info::info(shared, asked.caller.credential).await),
        ("GET", "/v1/preflight") => reply::ok(&preflight::run(shared, asked.caller).await),
        ("POST", "/v1/canary") => reply::ok(&canary::plan(shared, asked.peer).await?),
        ("GET", "/v1/sandboxes") => {
            let after = after.map(str::parse::<SandboxId>).transpose();
            let after = after.map_err(|fault| ApiError::invalid(fault.to_string()))?;
            reply::ok(&lifecycle::list(shared, after)?)
        }
        _ => Err(no_route(method, path)),
    }
}

async fn sandbox_route(
    shared: &Arc<Shared>,
    asked: Asked<'_>,
    (id, rest): (SandboxId, &str),
    body: &mut Option<SignedBody>,
) -> Reply {
    let method = asked.parts.method.as_str();
    let path = asked.parts.uri.path();
    if let Some(agent_path) = rest.strip_prefix(AGENT)
        && agent_path.starts_with('/')
    {
        // From the text of the target, so that the agent gets the very bytes that were signed.
        let target = asked
            .parts
            .uri
            .path_and_query()
            .map_or("", |all| all.as_str());
        let target = &target[path.len() - agent_path.len()..];
        return relay::relay(shared, id, (asked.parts, target), body).await;
    }
    if asked.parts.uri.query().is_some() {
        return Err(ApiError::invalid("this route takes no query"));
    }
    if (method, rest) == ("POST", "/claim") {
        return relay::relay(shared, id, (asked.parts, "/v1/claim"), body).await;
    }
    let Some(body) = body.as_mut() else {
        return Err(no_route(method, path));
    };
    body::empty(body).await?;
    match (method, rest) {
        ("GET", "") => reply::ok(&lifecycle::view(shared, id)?),
        ("DELETE", "") => reply::ok(&lifecycle::delete(shared, id).await?),
        _ => Err(no_route(method, path)),
    }
}

fn no_route(method: &str, path: &str) -> ApiError {
    let shown = path.as_bytes().get(..200).unwrap_or(path.as_bytes());
    let path = escape_for_display(shown);
    let method = method.get(..16).unwrap_or(method);
    ApiError::not_found(format!("there is no route {method} {path}"))
}
