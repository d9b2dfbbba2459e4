//! Asking an agent for its health before anybody has a key for it.

use glovebox_protocol::health::Health;
use hyper::client::conn::http1::handshake;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;

use crate::body::RequestBody;
use crate::connect::ByteStream;
use crate::error::ClientError;
use crate::exchange::{MAX_HEALTH, read_whole};

/// Waits for the first answer of an agent that is being started, over a stream of its own.
///
/// # Errors
/// When the stream ends before an answer, or what comes is none.
pub async fn first_health(stream: Box<dyn ByteStream>) -> Result<Health, ClientError> {
    let (mut sender, connection) = handshake(TokioIo::new(stream))
        .await
        .map_err(ClientError::Transport)?;
    let request = Request::get("/v1/health")
        .header(HOST, "agent")
        .body(RequestBody::Whole(None))
        .map_err(ClientError::Request)?;
    let asked = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(ClientError::Transport)?;
        let status = response.status();
        let body = read_whole(&mut response.into_body(), MAX_HEALTH).await?;
        if status == StatusCode::OK {
            serde_json::from_slice(&body).map_err(ClientError::Answer)
        } else {
            Err(ClientError::OutOfPlace)
        }
    };
    tokio::pin!(connection);
    tokio::select! {
        biased;
        answer = asked => answer,
        ended = &mut connection => match ended {
            Ok(()) => Err(ClientError::Cut),
            Err(error) => Err(ClientError::Transport(error)),
        },
    }
}
