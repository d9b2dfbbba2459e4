//! Files in and out, streamed, with their hashes checked.

use std::path::Path;

use bytes::{Bytes, BytesMut};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::{FileName, Transferred};
use glovebox_protocol::frame::FrameKind;
use glovebox_protocol::sign::BodyDigest;
use hyper::StatusCode;
use ring::digest::{Context, SHA256};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncSeekExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::agent::AgentClient;
use crate::body::RequestBody;
use crate::error::ClientError;
use crate::exchange::Head;
use crate::execution::Frames;
use crate::pool::{Answer, MAX_ANSWER, refusal};

/// Bytes read from a source at once.
const CHUNK_BYTES: usize = 256 * 1024;

impl AgentClient {
    /// Pushes a file in: exactly `bytes` bytes from `source`, whose hash is known beforehand,
    /// because it is signed before the first byte goes out.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn put(
        &self,
        name: &FileName,
        source: &mut (impl AsyncRead + Unpin + Send),
        bytes: u64,
        sha256: BodyDigest,
    ) -> Result<Transferred, ClientError> {
        let target = format!("/v1/files/{}", name.encoded());
        let head = Head {
            method: "PUT",
            target: &target,
            length: bytes,
            sha256,
        };
        let epoch = self.epoch().await?;
        let (sender, chunks) = mpsc::channel(2);
        let body = RequestBody::Stream {
            chunks,
            left: bytes,
        };
        let request = self.link.sign(head, epoch, body)?;
        let sending = self.link.send(request, head);
        tokio::pin!(sending);
        let sent = tokio::select! {
            // An answer that comes early is a refusal; the rest need not be read then.
            sent = &mut sending => sent,
            read = feed(source, bytes, &sender) => {
                drop(sender);
                match (sending.await, read) {
                    (_, Err(error)) => return Err(error),
                    (sent, Ok(())) => sent,
                }
            }
        };
        let (status, answer) = sent?;
        if status != StatusCode::OK {
            return Err(refusal(answer).await);
        }
        let stored = transferred(answer).await?;
        verify(name, &stored, bytes, sha256)?;
        Ok(stored)
    }

    /// Pushes in what is in memory.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn put_bytes(
        &self,
        name: &FileName,
        bytes: Bytes,
    ) -> Result<Transferred, ClientError> {
        let target = format!("/v1/files/{}", name.encoded());
        let (length, sha256) = (bytes.len() as u64, BodyDigest::of(&bytes));
        let answer = self.send("PUT", &target, bytes).await?;
        let stored = transferred(answer).await?;
        verify(name, &stored, length, sha256)?;
        Ok(stored)
    }

    /// Pushes in a local file. It is read twice: for its hash, and to be sent.
    ///
    /// # Errors
    /// See [`ClientError`]; also when the file changes between the two.
    pub async fn put_path(&self, name: &FileName, path: &Path) -> Result<Transferred, ClientError> {
        let mut file = tokio::fs::File::open(path)
            .await
            .map_err(ClientError::Read)?;
        let mut hash = Context::new(&SHA256);
        let mut bytes = 0;
        let mut buffer = BytesMut::with_capacity(CHUNK_BYTES);
        loop {
            buffer.clear();
            let read = file
                .read_buf(&mut buffer)
                .await
                .map_err(ClientError::Read)?;
            if read == 0 {
                break;
            }
            hash.update(&buffer);
            bytes += read as u64;
        }
        file.rewind().await.map_err(ClientError::Read)?;
        self.put(name, &mut file, bytes, digest(hash)).await
    }

    /// Fetches a file into `sink` and checks that it arrived as it was sent. Takes at most
    /// `limit_bytes`; what was written before an error is of no use.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get(
        &self,
        name: &FileName,
        sink: &mut (impl AsyncWrite + Unpin + Send),
        limit_bytes: u64,
    ) -> Result<Transferred, ClientError> {
        let target = format!("/v1/files/{}", name.encoded());
        let answer = self.send("GET", &target, Bytes::new()).await?;
        let (received, said) = receive(answer, sink, limit_bytes).await?;
        verify(name, &said, received.bytes, received.sha256)?;
        Ok(said)
    }

    /// Fetches a file into memory.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn get_bytes(
        &self,
        name: &FileName,
        limit_bytes: u64,
    ) -> Result<Vec<u8>, ClientError> {
        let mut bytes = Vec::new();
        self.get(name, &mut bytes, limit_bytes).await?;
        Ok(bytes)
    }
}

/// Reads `bytes` bytes from a source into a body. A source that has more is not read further:
/// its hash would not fit.
async fn feed(
    source: &mut (impl AsyncRead + Unpin + Send),
    bytes: u64,
    body: &mpsc::Sender<std::io::Result<Bytes>>,
) -> Result<(), ClientError> {
    let mut source = source.take(bytes);
    let mut left = bytes;
    while left > 0 {
        let mut chunk = BytesMut::with_capacity(CHUNK_BYTES);
        let read = source.read_buf(&mut chunk).await;
        let fault = match read {
            Ok(0) => std::io::ErrorKind::UnexpectedEof.into(),
            Ok(read) => {
                left -= read as u64;
                if body.send(Ok(chunk.freeze())).await.is_err() {
                    // The connection has ended; why, its answer says.
                    return Ok(());
                }
                continue;
            }
            Err(error) => error,
        };
        // Ends the request without an effect; nobody may be there to be told.
        let _ = body.send(Err(fault.kind().into())).await;
        return Err(ClientError::Read(fault));
    }
    Ok(())
}

async fn transferred(answer: Answer) -> Result<Transferred, ClientError> {
    let body = answer.whole(MAX_ANSWER).await?;
    serde_json::from_slice(&body).map_err(ClientError::Answer)
}

/// What came before the last event of an answer.
pub(crate) struct Received {
    pub(crate) bytes: u64,
    pub(crate) sha256: BodyDigest,
}

/// Takes an answer of bytes into `sink`, and the document that ends it: what was sent, or why it
/// broke off.
pub(crate) async fn receive<T: DeserializeOwned>(
    answer: Answer,
    sink: &mut (impl AsyncWrite + Unpin + Send),
    limit_bytes: u64,
) -> Result<(Received, T), ClientError> {
    let mut frames = Frames::new(answer);
    let mut hash = Context::new(&SHA256);
    let mut bytes: u64 = 0;
    let end = loop {
        let frame = frames.next().await?;
        match frame.kind {
            FrameKind::Data => {
                bytes = bytes.saturating_add(frame.payload.len() as u64);
                if bytes > limit_bytes {
                    return Err(ClientError::TooLong { limit_bytes });
                }
                hash.update(&frame.payload);
                sink.write_all(&frame.payload)
                    .await
                    .map_err(ClientError::Write)?;
            }
            FrameKind::Event => break frame.payload,
            FrameKind::Stdout | FrameKind::Stderr => return Err(ClientError::OutOfPlace),
        }
    };
    if let Ok(EventBody::Failed(body)) = serde_json::from_slice(&end) {
        return Err(ClientError::Refused(Box::new(body)));
    }
    let said = serde_json::from_slice(&end).map_err(ClientError::Answer)?;
    frames.end().await?;
    sink.flush().await.map_err(ClientError::Write)?;
    let sha256 = digest(hash);
    Ok((Received { bytes, sha256 }, said))
}

fn verify(
    name: &FileName,
    said: &Transferred,
    bytes: u64,
    sha256: BodyDigest,
) -> Result<(), ClientError> {
    if said.name == *name && said.bytes == bytes && said.sha256 == sha256 {
        Ok(())
    } else {
        Err(ClientError::Corrupt { name: name.clone() })
    }
}

fn digest(hash: Context) -> BodyDigest {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hash.finish().as_ref());
    BodyDigest::from_bytes(bytes)
}
