//! Requests that are signed and sent by hand, so that they can be sent twice or to the wrong
//! sandbox.

use anyhow::{Context as _, Result};
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::{BodyDigest, Envelope, Epoch, Nonce, SignedHeaders};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::lab::Lab;

/// The bytes of a signed `GET /v1/status` for a sandbox.
///
/// # Errors
/// When the operating system has no random bytes or no time.
pub(super) fn signed_status(lab: &Lab, audience: SandboxId, epoch: Epoch) -> Result<Vec<u8>> {
    let key = lab.key();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let unix_ms = i64::try_from(now.as_millis())?;
    let (nonce, body) = (Nonce::random()?, BodyDigest::of(b""));
    let audience = audience.to_string();
    let envelope = Envelope {
        installation: lab.installation(),
        audience: &audience,
        epoch,
        method: "GET",
        path_and_query: "/v1/status",
        content_length: 0,
        body,
        unix_ms,
        nonce,
        key: key.id(),
    };
    let headers = SignedHeaders {
        key: key.id(),
        epoch,
        unix_ms,
        nonce,
        body,
        signature: key.sign(&envelope),
    };
    let mut request = String::from("GET /v1/status HTTP/1.1\r\nhost: agent\r\n");
    for (name, value) in headers.to_pairs() {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("connection: close\r\n\r\n");
    Ok(request.into_bytes())
}

/// Sends bytes to an agent and gives the number of its answer.
///
/// # Errors
/// When there is no answer.
pub(super) async fn status_of(lab: &Lab, sandbox: SandboxId, request: &[u8]) -> Result<u16> {
    let mut stream = lab.runtime.connect(sandbox).await?;
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    stream.take(64 * 1024).read_to_end(&mut answer).await?;
    let text = String::from_utf8_lossy(&answer);
    let number = text.split(' ').nth(1).context("no answer")?;
    Ok(number.parse()?)
}
