//! The first exchange with an agent, whose connection is kept for the requests that follow.

use std::future::poll_fn;
use std::task::Poll;

use glovebox_protocol::health::Health;
use glovebox_runtime::{AgentStream, Cause};
use http_body::Body as _;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, StatusCode};

use super::channel::Channel;
use super::{AgentRequest, Pool};

/// Longest answer, in bytes.
const MAX_HEALTH: usize = 4096;

/// Asks an agent for its health, which nobody needs a key for.
pub(crate) async fn health(stream: Box<dyn AgentStream>, pool: &Pool) -> Result<Health, Cause> {
    let mut channel = Channel::open(stream).await?;
    let mut request = Request::new(AgentRequest(None));
    *request.uri_mut() = hyper::Uri::from_static("/v1/health");
    let host = HeaderValue::from_static("agent");
    request.headers_mut().insert(HOST, host);
    let response = channel.send(request).await;
    let response = response.map_err(|failed| failed.into_error())?;
    let status = response.status();
    let body = whole(&mut channel, &mut response.into_body()).await?;
    if status != StatusCode::OK {
        return Err(format!("it answers with {status}").into());
    }
    let health = serde_json::from_slice(&body)?;
    poll_fn(|context| {
        channel.settle(context);
        Poll::Ready(())
    })
    .await;
    pool.put(channel);
    Ok(health)
}

async fn whole(channel: &mut Channel, body: &mut Incoming) -> Result<Vec<u8>, Cause> {
    let mut bytes: Vec<u8> = Vec::new();
    while !body.is_end_stream() {
        let Some(frame) = poll_fn(|context| channel.poll_frame(body, context)).await else {
            break;
        };
        let chunk: Bytes = frame?.into_data().unwrap_or_default();
        if bytes.len() + chunk.len() > MAX_HEALTH {
            return Err(format!("its answer is longer than {MAX_HEALTH} bytes").into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
