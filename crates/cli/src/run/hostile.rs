//! A played agent for tests: it answers as a test wants it to, or not at all.

use std::sync::{Arc, Weak};

use glovebox_client::{AgentClient, ByteStream, Identity};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::sign::{Epoch, SigningKey};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::sandbox::Sandbox;

/// What it answers to a request line such as `GET /v1/kernel`; nothing: it never answers.
pub(crate) type Answers = fn(&str) -> Option<Vec<u8>>;

/// A sandbox with such an agent, and without a runtime.
pub(crate) fn sandbox(answers: Answers) -> Sandbox {
    let id = SandboxId::new();
    let identity = Identity {
        key: Arc::new(SigningKey::generate().unwrap()),
        installation: InstallationId::new(),
        sandbox: id,
    };
    let client = AgentClient::new(identity, move || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(theirs, answers));
        std::future::ready(Ok(Box::new(ours) as Box<dyn ByteStream>))
    });
    Sandbox::played(Weak::new(), id, client)
}

/// One request, read to the end of its head; its body stays unread.
async fn serve(mut stream: DuplexStream, answers: Answers) {
    let mut request = Vec::new();
    while !request.windows(4).any(|window| window == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let head = String::from_utf8_lossy(&request).into_owned();
    let answer = if head.starts_with("GET /v1/health ") {
        let health = format!(r#"{{"protocol":1,"epoch":"{}"}}"#, Epoch::random().unwrap());
        Some(http(health))
    } else {
        let line = head.split(" HTTP/").next().unwrap_or_default();
        answers(line)
    };
    match answer {
        Some(answer) => {
            let _ = stream.write_all(&answer).await;
            // An answer need not be whole: that nothing more comes is for the client to notice.
            while stream.read_buf(&mut request).await.unwrap_or(0) > 0 {}
        }
        None => std::future::pending().await,
    }
}

/// A whole answer, after which the connection closes.
pub(crate) fn http(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
