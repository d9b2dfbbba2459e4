//! Copies the inputs into the sandbox.

use std::pin::Pin;
use std::task::{Context, Poll};

use glovebox_client::AgentClient;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::sign::BodyDigest;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use super::inputs::{Input, Inputs};
use super::sandbox::from_client;
use super::session::Session;
use crate::failure::{Failure, shown, unreadable};
use crate::progress::Progress;

/// Bytes that are read at once.
const CHUNK: usize = 256 * 1024;

/// Copies all inputs into the sandbox, one after the other.
pub(crate) async fn stage(
    session: &mut Session<'_>,
    client: &AgentClient,
    inputs: &Inputs,
) -> Result<(), Failure> {
    let total = inputs.total_bytes();
    if total > 0 {
        session.progress.phase_of_bytes("copying in", total);
    }
    for input in inputs.files() {
        let progress = session.progress;
        let staged = session
            .until_stopped("copying files in", put(client, input, progress))
            .await?;
        session
            .tell(EventBody::InputStaged {
                name: input.name.for_display(),
                bytes: staged.bytes,
                sha256: staged.sha256,
            })
            .await?;
    }
    Ok(())
}

async fn put(
    client: &AgentClient,
    input: &Input,
    progress: &Progress,
) -> Result<glovebox_protocol::file::Transferred, Failure> {
    let unreadable = |error: std::io::Error| unreadable(&input.path, &error);
    // The hash is signed before the first byte goes out, so the file is read twice.
    let (bytes, sha256) = digest(input).await.map_err(unreadable)?;
    if bytes != input.bytes {
        return Err(Failure::bad_input(format!(
            "{} changed while it was copied in",
            shown(&input.path)
        )));
    }
    let file = tokio::fs::File::open(&input.path)
        .await
        .map_err(unreadable)?;
    let mut source = Counted { file, progress };
    client
        .put(&input.name, &mut source, bytes, sha256)
        .await
        .map_err(|error| from_client(format!("copying in {}", shown(&input.path)), error))
}

async fn digest(input: &Input) -> std::io::Result<(u64, BodyDigest)> {
    let mut file = tokio::fs::File::open(&input.path).await?;
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    let mut chunk = vec![0; CHUNK];
    let mut bytes = 0;
    loop {
        let count = file.read(&mut chunk).await?;
        // A file that grows is not read for ever.
        if count == 0 || bytes > input.bytes {
            break;
        }
        hash.update(&chunk[..count]);
        bytes += count as u64;
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(hash.finish().as_ref());
    Ok((bytes, BodyDigest::from_bytes(digest)))
}

/// A file that tells the progress line how much of it was read.
struct Counted<'a> {
    file: tokio::fs::File,
    progress: &'a Progress,
}

impl AsyncRead for Counted<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.file).poll_read(context, buffer);
        self.progress
            .add_bytes((buffer.filled().len() - before) as u64);
        read
    }
}
