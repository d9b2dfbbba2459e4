//! `PUT /v1/files/NAME`: spool, verify, only then put in place.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use glovebox_protocol::file::{FileName, Transferred};
use glovebox_protocol::sign::{BodyDigest, Nonce};
use ring::digest::{Context, SHA256};
use rustix::io::Errno;

use super::{FileError, FileThreads, Inputs};
use crate::body::SignedBody;
use crate::error::ApiError;
use crate::reply::{self, Reply};

/// Bytes that are gathered before a thread is asked to write them: large enough that handing
/// over costs nothing, small enough that memory stays flat.
const BATCH_BYTES: usize = 512 * 1024;

/// How the names of files begin that are still being received.
pub(crate) const SPOOL_PREFIX: &str = ".glovebox-put-";

/// Takes one file. Nothing stands under its name before the whole body is there and verified.
pub(crate) async fn put(
    files: &FileThreads,
    inputs: &Arc<Inputs>,
    name: FileName,
    body: &mut SignedBody,
) -> Reply {
    let bytes = body.length();
    inputs.reserve(bytes)?;
    let reserved = Reserved {
        inputs: Arc::clone(inputs),
        bytes: Some(bytes),
    };
    let sha256 = store(files, reserved, name.clone(), body).await?;
    reply::ok(&Transferred {
        name,
        bytes,
        sha256,
    })
}

async fn store(
    files: &FileThreads,
    reserved: Reserved,
    name: FileName,
    body: &mut SignedBody,
) -> Result<BodyDigest, ApiError> {
    let spooled = Spooled {
        files: files.clone(),
        base: Some(spool_name()?),
        abandoned: Arc::default(),
    };
    let stored = receive(&spooled, reserved, name, body).await;
    match stored {
        Ok(_) => spooled.keep(),
        // Before the answer, so that whoever has read it finds nothing left.
        Err(_) => spooled.discard().await,
    }
    stored
}

async fn receive(
    spooled: &Spooled,
    reserved: Reserved,
    name: FileName,
    body: &mut SignedBody,
) -> Result<BodyDigest, ApiError> {
    let (files, base) = (&spooled.files, spooled.base());
    let mut file = files
        .run({
            let (base, name) = (base.clone(), name.clone());
            let abandoned = Arc::clone(&spooled.abandoned);
            move |workspace| {
                let made = workspace.create(&base);
                // The job that removes it may have run before this one.
                if abandoned.load(Ordering::SeqCst) {
                    workspace.discard(&base);
                }
                match made {
                    Ok(fd) => Ok(SpoolFile::new(fd)),
                    Err(cause) => Err(FileError::from_os("making room for", &name, cause)),
                }
            }
        })
        .await??;
    let mut batch = body.batch(BATCH_BYTES).await?;
    while !batch.is_empty() {
        let name = name.clone();
        let writing = files.run(move |_| match file.append(&batch) {
            Ok(()) => Ok(file),
            Err(cause) => Err(FileError::from_os("writing", &name, cause)),
        });
        // The next batch is read while this one is hashed and written.
        let (written, next) = tokio::join!(writing, body.batch(BATCH_BYTES));
        file = written??;
        batch = next?;
    }
    let sha256 = file.finish();
    body.check(sha256)?;
    // One job does all of it: a request that is dropped now is either in and counted, or neither.
    files
        .run(move |workspace| {
            workspace.put_in_place(&base, &name)?;
            reserved.keep(name, sha256);
            Ok::<_, FileError>(())
        })
        .await??;
    Ok(sha256)
}

/// A name that the program cannot foresee. Beginning with a dot it is never collected.
fn spool_name() -> Result<String, ApiError> {
    let nonce = Nonce::random().map_err(|error| ApiError::internal("naming a file", &error))?;
    Ok(format!("{SPOOL_PREFIX}{nonce}"))
}

/// A file that is being received, and its hash so far. The hash is over what came in, so a
/// program that writes into the file in the meantime changes only what it could change anyway.
struct SpoolFile {
    fd: OwnedFd,
    hash: Context,
}

impl SpoolFile {
    fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            hash: Context::new(&SHA256),
        }
    }

    fn append(&mut self, batch: &[Bytes]) -> Result<(), Errno> {
        for chunk in batch {
            self.hash.update(chunk);
            let mut rest = &chunk[..];
            while !rest.is_empty() {
                match rustix::io::write(&self.fd, rest) {
                    Ok(written) => rest = &rest[written..],
                    Err(Errno::INTR) => {}
                    Err(cause) => return Err(cause),
                }
            }
        }
        Ok(())
    }

    fn finish(self) -> BodyDigest {
        super::digest(self.hash)
    }
}

/// Removes the spool file unless it was put in place, also when the request is dropped midway.
struct Spooled {
    files: FileThreads,
    base: Option<String>,
    abandoned: Arc<AtomicBool>,
}

impl Spooled {
    fn base(&self) -> String {
        self.base.clone().unwrap_or_default()
    }

    async fn discard(mut self) {
        if let Some(base) = self.base.take() {
            // Without threads there is nobody left who could remove it.
            let _ = self
                .files
                .run(move |workspace| workspace.discard(&base))
                .await;
        }
    }

    fn keep(mut self) {
        self.base = None;
    }
}

impl Drop for Spooled {
    fn drop(&mut self) {
        if let Some(base) = self.base.take() {
            self.abandoned.store(true, Ordering::SeqCst);
            self.files
                .run_later(move |workspace| workspace.discard(&base));
        }
    }
}

/// Gives the budget back unless the file went in, also when the request is dropped midway.
struct Reserved {
    inputs: Arc<Inputs>,
    bytes: Option<u64>,
}

impl Reserved {
    fn keep(mut self, name: FileName, sha256: BodyDigest) {
        self.bytes = None;
        self.inputs.remember(name, sha256);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.inputs.release(bytes);
        }
    }
}
