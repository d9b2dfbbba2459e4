//! `GET /v1/files/NAME`: the bytes as frames, then how many they were and their hash.

use std::os::fd::OwnedFd;

use bytes::Bytes;
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::{FileName, Transferred};
use glovebox_protocol::frame::{self, FrameKind};
use ring::digest::{Context, SHA256};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use serde::Serialize;
use tokio::sync::mpsc::Sender;

use super::{FileError, FileThreads};
use crate::error::ApiError;
use crate::reply::{self, Reply};

/// Bytes read and sent at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Gives one regular file. `limit` is the largest that is given at all: a program can make a
/// file look larger than any disk.
pub(crate) async fn get(files: &FileThreads, name: FileName, limit: u64) -> Reply {
    let file = files
        .run({
            let name = name.clone();
            move |workspace| {
                let (fd, stat) = workspace.open_file(&name)?;
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                if bytes > limit {
                    return Err(FileError::TooLarge { name, bytes, limit });
                }
                Ok(SourceFile::new(fd, bytes))
            }
        })
        .await??;
    let (frames, response) = reply::frames();
    tokio::spawn(stream(files.clone(), name, file, frames));
    Ok(response)
}

/// Sends the file; ends early when nobody reads any more.
async fn stream(files: FileThreads, name: FileName, file: SourceFile, frames: Sender<Bytes>) {
    let end = match send_chunks(&files, &name, file, &frames).await {
        Ok(Some(done)) => event(&done),
        Ok(None) => return,
        Err(error) => event(&EventBody::Failed(*ApiError::from(error).body)),
    };
    if let Some(end) = end {
        // The reader may have gone; then nothing is lost.
        let _ = frames.send(end).await;
    }
}

async fn send_chunks(
    files: &FileThreads,
    name: &FileName,
    mut file: SourceFile,
    frames: &Sender<Bytes>,
) -> Result<Option<Transferred>, FileError> {
    loop {
        let (given_back, chunk) = files
            .run(move |_| {
                let chunk = file.next_chunk();
                (file, chunk)
            })
            .await?;
        file = given_back;
        match chunk {
            Ok(Some(chunk)) => {
                if frames.send(chunk).await.is_err() {
                    return Ok(None);
                }
            }
            Ok(None) => {
                return Ok(Some(Transferred {
                    name: name.clone(),
                    bytes: file.sent,
                    sha256: super::digest(file.hash),
                }));
            }
            Err(cause) => return Err(FileError::from_os("reading", name, cause)),
        }
    }
}

fn event(document: &impl Serialize) -> Option<Bytes> {
    let json = serde_json::to_vec(document).ok()?;
    frame::encode(FrameKind::Event, &json).ok()
}

/// A file that is being sent, and its hash so far.
struct SourceFile {
    fd: OwnedFd,
    hash: Context,
    sent: u64,
    /// Bytes still to come at most: the size at the opening, so that a file that grows while it
    /// is read has an end.
    left: u64,
}

impl SourceFile {
    fn new(fd: OwnedFd, bytes: u64) -> Self {
        Self {
            fd,
            hash: Context::new(&SHA256),
            sent: 0,
            left: bytes,
        }
    }

    /// The next frame; nothing at the end.
    fn next_chunk(&mut self) -> Result<Option<Bytes>, Errno> {
        let want = usize::try_from(self.left).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        if want == 0 {
            return Ok(None);
        }
        let mut chunk = Vec::with_capacity(frame::HEADER + CHUNK_BYTES);
        chunk.extend_from_slice(&[0; frame::HEADER]);
        let read = loop {
            match rustix::io::read(&self.fd, spare_capacity(&mut chunk)) {
                Ok(read) => break read,
                Err(Errno::INTR) => {}
                Err(cause) => return Err(cause),
            }
        };
        if read == 0 {
            return Ok(None);
        }
        chunk.truncate(frame::HEADER + want);
        let payload = &chunk[frame::HEADER..];
        self.hash.update(payload);
        self.sent += payload.len() as u64;
        self.left -= payload.len() as u64;
        let header = frame::header(FrameKind::Data, payload.len()).map_err(|_| Errno::MSGSIZE)?;
        chunk[..frame::HEADER].copy_from_slice(&header);
        Ok(Some(chunk.into()))
    }
}
