//! HTTP by hand: answers that are wrong have to be possible.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Longest head of a request, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Longest body of a request, in bytes.
const MAX_BODY: usize = 64 * 1024 * 1024;

/// A request.
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

/// Reads the request of a connection; nothing where it is none.
pub(super) async fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        if bytes.len() > MAX_HEAD || stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..head_end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.get("content-length").map_or("0", String::as_str);
    let length: usize = length.parse().ok().filter(|length| *length <= MAX_BODY)?;
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some(Asked {
        method,
        path,
        headers,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// An answer in one piece, or one that is being written.
pub(super) struct Reply {
    status: u16,
    body: String,
}

impl Reply {
    pub(super) fn document(document: &Value) -> Self {
        Self {
            status: 200,
            body: document.to_string(),
        }
    }

    pub(super) fn failure(status: u16, message: &str, code: &str) -> Self {
        let error = json!({ "message": message, "type": "invalid_request_error", "code": code });
        Self {
            status,
            body: json!({ "error": error }).to_string(),
        }
    }

    pub(super) async fn send(self, stream: &mut TcpStream) -> std::io::Result<()> {
        let headers = BTreeMap::new();
        let reply = Self::begin(stream, self.status, "application/json", &headers).await?;
        reply.part(stream, self.body.as_bytes()).await?;
        reply.end(stream).await
    }

    /// Writes the head of an answer whose body comes in parts.
    pub(super) async fn begin(
        stream: &mut TcpStream,
        status: u16,
        kind: &str,
        headers: &BTreeMap<String, String>,
    ) -> std::io::Result<Self> {
        let mut head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: {kind}\r\n\
             transfer-encoding: chunked\r\nconnection: close\r\n"
        );
        for (name, value) in headers {
            // Writing to a text cannot fail.
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await?;
        Ok(Self {
            status,
            body: String::new(),
        })
    }

    pub(super) async fn part(&self, stream: &mut TcpStream, part: &[u8]) -> std::io::Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        let mut chunk = format!("{:x}\r\n", part.len()).into_bytes();
        chunk.extend_from_slice(part);
        chunk.extend_from_slice(b"\r\n");
        stream.write_all(&chunk).await
    }

    pub(super) async fn end(self, stream: &mut TcpStream) -> std::io::Result<()> {
        stream.write_all(b"0\r\n\r\n").await?;
        stream.shutdown().await
    }
}
