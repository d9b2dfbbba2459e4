//! HTTP: one connection, its requests one after the other. What is routed has passed
//! [`crate::auth`], except for `GET /healthz`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::strict;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::http::request::Parts;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::io::InspectReader;

use crate::auth::{Caller, authenticate, sign_off};
use crate::body::{SignedBody, discard};
use crate::connections::Standing;
use crate::error::ApiError;
use crate::reply::{self, ReplyBody};
use crate::routes::{self, Asked};
use crate::state::Shared;
use crate::strangers::Telling;

/// How long a connection may wait for the next request, and a request for the end of its head.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// Room for reading and writing on one connection, in bytes. A head has to fit in.
const BUFFER_BYTES: usize = 64 * 1024;

/// Most headers of a request.
const MAX_HEADERS: usize = 64;

/// Serves one connection until it is closed.
pub(crate) async fn serve<S>(shared: Arc<Shared>, stream: S, standing: Arc<Standing>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (look, ambiguous) = strict::watch();
    let stream = InspectReader::new(stream, look);
    let service = service_fn(|request| answer(&shared, &ambiguous, &standing, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_LIMIT)
        .max_buf_size(BUFFER_BYTES)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is the other side's matter; what ran for it is ended by the
    // streams that nobody reads any more.
    let _ = connection.await;
}

async fn answer(
    shared: &Arc<Shared>,
    ambiguous: &AtomicBool,
    standing: &Standing,
    request: Request<Incoming>,
) -> Result<Response<ReplyBody>, Infallible> {
    let _busy = standing.busy();
    let (parts, mut incoming) = request.into_parts();
    if ambiguous.load(Ordering::Relaxed) || !is_plain(&parts) {
        let error = ApiError::invalid("the request can be read in more than one way");
        return Ok(close(refuse(shared, &parts, None, error)));
    }
    if parts.method == Method::GET && parts.uri == "/healthz" {
        let health = serde_json::json!({ "status": "ok" });
        let reply = sign_off(shared, None, reply::json(StatusCode::OK, &health));
        return Ok(finish(reply, discard(&mut incoming).await));
    }
    let caller = match authenticate(shared, &parts, &incoming) {
        Ok(caller) => caller,
        Err(error) => {
            let reply = refuse(shared, &parts, None, error);
            return Ok(finish(reply, discard(&mut incoming).await));
        }
    };
    standing.authenticated();
    Ok(answer_verified(shared, &parts, caller, incoming, standing.peer()).await)
}

async fn answer_verified(
    shared: &Arc<Shared>,
    parts: &Parts,
    caller: Caller,
    incoming: Incoming,
    peer: Option<SocketAddr>,
) -> Response<ReplyBody> {
    let mut body = match SignedBody::new(incoming, caller.verified) {
        Ok(body) => Some(body),
        Err(error) => return refuse(shared, parts, Some(caller), error),
    };
    let asked = Asked {
        parts,
        caller,
        peer,
    };
    match routes::route(shared, asked, &mut body).await {
        Ok(reply) => sign_off(shared, Some(caller), reply),
        Err(error) => {
            let reply = refuse(shared, parts, Some(caller), error);
            match body {
                Some(mut body) => finish(reply, body.discard().await),
                None if caller.verified.content_length == 0 => reply,
                // It was being passed on when something went wrong.
                None => close(reply),
            }
        }
    }
}

/// Whether the request is of the one form that clients of ours send.
fn is_plain(parts: &Parts) -> bool {
    parts.version == Version::HTTP_11
        && parts.uri.scheme().is_none()
        && parts.uri.authority().is_none()
        && parts.uri.path().starts_with('/')
        && !parts.headers.contains_key(hyper::header::UPGRADE)
        && !parts.headers.contains_key(hyper::header::TRANSFER_ENCODING)
        && !parts.headers.contains_key(hyper::header::CONTENT_ENCODING)
}

/// Tells of a refusal. Those of strangers only as many as nobody can fill the journal with.
fn tell_refusal(shared: &Shared, is_stranger: bool, facts: serde_json::Value) {
    let now_ms = shared.now_ms();
    let telling = if is_stranger {
        shared.strangers.refused(now_ms)
    } else {
        Telling {
            this: true,
            earlier: 0,
        }
    };
    if telling.earlier > 0 {
        let more = serde_json::json!({ "requests": telling.earlier });
        shared.journal.tell(now_ms, "refused_more", more);
    }
    if telling.this {
        shared.journal.tell(now_ms, "refused", facts);
    }
}

/// An error as the reply, and in the journal under the same number.
fn refuse(
    shared: &Shared,
    parts: &Parts,
    caller: Option<Caller>,
    mut error: ApiError,
) -> Response<ReplyBody> {
    // Any number that is used once will do.
    let request = ExecutionId::new().to_string();
    let facts = serde_json::json!({
        "request_id": request,
        "method": parts.method.as_str().get(..16).unwrap_or(parts.method.as_str()),
        "status": error.status.as_u16(),
        "code": error.body.code,
        "message": error.body.message,
        "credential": caller.map(|caller| caller.credential),
    });
    tell_refusal(shared, caller.is_none(), facts);
    error.body.request_id = Some(request);
    sign_off(shared, caller, reply::failed(&error))
}

fn finish(reply: Response<ReplyBody>, usable: bool) -> Response<ReplyBody> {
    if usable { reply } else { close(reply) }
}

fn close(mut reply: Response<ReplyBody>) -> Response<ReplyBody> {
    reply
        .headers_mut()
        .insert(CONNECTION, HeaderValue::from_static("close"));
    reply
}
