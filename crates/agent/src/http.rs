//! HTTP: one connection, its requests one after the other. What is routed has passed
//! [`crate::auth`], except for the unsigned health request.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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

use crate::auth::{authenticate, with_epoch};
use crate::body::{SignedBody, discard};
use crate::error::ApiError;
use crate::reply::{self, ReplyBody};
use crate::routes;
use crate::shared::Shared;

/// How long a connection may wait for the next request, and a request for the end of its head.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// Room for reading and writing on one connection, in bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// Serves one connection until it is closed, or until `over` and then to the end of what is under
/// way.
pub(crate) async fn serve<S>(shared: Arc<Shared>, stream: S, over: impl Future<Output = ()>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (look, ambiguous) = strict::watch();
    let stream = InspectReader::new(stream, look);
    let service = service_fn(|request| answer(&shared, &ambiguous, request));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(IDLE_LIMIT)
        .max_buf_size(BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is the other side's matter; what ran on it is ended by the
    // streams that nobody reads any more.
    let mut connection = pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = over => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
}

async fn answer(
    shared: &Arc<Shared>,
    ambiguous: &AtomicBool,
    request: Request<Incoming>,
) -> Result<Response<ReplyBody>, Infallible> {
    let (parts, incoming) = request.into_parts();
    if ambiguous.load(Ordering::Relaxed) || !is_plain(&parts) {
        let error = ApiError::invalid("the request can be read in more than one way");
        return Ok(close(respond(error)));
    }
    Ok(answer_plain(shared, &parts, incoming).await)
}

async fn answer_plain(
    shared: &Arc<Shared>,
    parts: &Parts,
    mut incoming: Incoming,
) -> Response<ReplyBody> {
    if parts.method == Method::GET && parts.uri == "/v1/health" {
        return reply::json(StatusCode::OK, &shared.health());
    }
    let claimed = match shared.claimed().await {
        Ok(claimed) => claimed,
        Err(error) => return finish(respond(error), discard(&mut incoming).await),
    };
    let verified = match authenticate(shared, claimed, parts, &incoming) {
        Ok(verified) => verified,
        Err(error) => {
            let reply = with_epoch(shared, respond(error));
            return finish(reply, discard(&mut incoming).await);
        }
    };
    let mut body = SignedBody::new(incoming, verified);
    match routes::route(shared, claimed, parts, &mut body).await {
        Ok(response) => response,
        Err(error) => {
            let reply = match error.status {
                StatusCode::UNAUTHORIZED => with_epoch(shared, respond(error)),
                _ => respond(error),
            };
            finish(reply, body.discard().await)
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

fn respond(error: ApiError) -> Response<ReplyBody> {
    reply::json(error.status, &error.body)
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
