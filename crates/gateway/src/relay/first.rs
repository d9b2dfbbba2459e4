//! The first exchange with an agent, whose connection is kept for the requests that follow.

use std::future::poll_fn;
use std::task::Poll;

use glovebox_protocol::health::Health;
use glovebox_runtime::{AgentStream, Cause};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, StatusCode};

use super::{AgentRequest, Pool, open};

/// Longest answer, in bytes.
const MAX_HEALTH: u64 = 4096;

/// Asks an agent for its health, which nobody needs a key for.
pub(crate) async fn health(stream: Box<dyn AgentStream>, pool: &Pool) -> Result<Health, Cause> {
    let mut channel = open(stream).await?;
    let mut request = Request::new(AgentRequest(None));
    *request.uri_mut() = hyper::Uri::from_static("/v1/health");
    let host = HeaderValue::from_static("agent");
    request.headers_mut().insert(HOST, host);
    let response = channel.send(request).await;
    let response = response.map_err(|failed| failed.into_error())?;
    let status = response.status();
    let body = channel.whole(&mut response.into_body(), MAX_HEALTH).await?;
    if status != StatusCode::OK {
        return Err(format!("it answers with {status}").into());
    }
    let health = serde_json::from_slice(&body)?;
    poll_fn(|context| {
        channel.settle(context);
        Poll::Ready(())
    })
    .await;
    if channel.is_usable() {
        pool.put(channel);
    }
    Ok(health)
}
