//! Asking an agent for its health before anybody has a key for it.

use glovebox_protocol::health::Health;
use hyper::header::HOST;
use hyper::{Request, StatusCode};

use crate::body::RequestBody;
use crate::channel::Channel;
use crate::connect::ByteStream;
use crate::error::ClientError;
use crate::pool::ROOM_BYTES;

/// Longest answer, in bytes.
const MAX_HEALTH: u64 = 4096;

/// Waits for the first answer of an agent that is being started, over a stream of its own.
///
/// # Errors
/// When the stream ends before an answer, or what comes is none.
pub async fn first_health(stream: Box<dyn ByteStream>) -> Result<Health, ClientError> {
    let mut channel = Channel::open(stream, ROOM_BYTES)
        .await
        .map_err(ClientError::Transport)?;
    let request = Request::get("/v1/health")
        .header(HOST, "agent")
        .body(RequestBody::Whole(None))
        .map_err(ClientError::Request)?;
    let response = channel.send(request).await;
    let response = response.map_err(|failed| ClientError::Transport(failed.into_error()))?;
    let status = response.status();
    let body = channel.whole(&mut response.into_body(), MAX_HEALTH).await?;
    if status == StatusCode::OK {
        serde_json::from_slice(&body).map_err(ClientError::Answer)
    } else {
        Err(ClientError::OutOfPlace)
    }
}
