//! Bodies of requests, tied to what their signature promised.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::sign::{BodyDigest, Verified};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::error::ApiError;
use crate::state::lock;

/// Most bytes of a document that the gateway itself reads.
pub(crate) const MAX_JSON: u64 = 64 * 1024;

/// A body as long as this is read to its end though nobody wants it, so that a client that is
/// still sending gets to read the answer. Of a longer one the connection is cut.
const MAX_UNWANTED: u64 = 1024 * 1024;

/// How long the next part of a body may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The whole of a body, verified before it is parsed.
pub(crate) async fn json<T: DeserializeOwned>(body: &mut SignedBody) -> Result<T, ApiError> {
    let bytes = whole(body, MAX_JSON).await?;
    serde_json::from_slice(&bytes)
        .map_err(|error| ApiError::invalid(format!("the body is not as it has to be: {error}")))
}

/// Makes sure that there is none.
pub(crate) async fn empty(body: &mut SignedBody) -> Result<(), ApiError> {
    whole(body, 0).await.map(drop)
}

async fn whole(body: &mut SignedBody, limit: u64) -> Result<Bytes, ApiError> {
    if body.verified.content_length > limit {
        return Err(ApiError::body_too_large(limit));
    }
    let mut bytes = Vec::new();
    loop {
        match body.frame().await {
            None => return Ok(bytes.into()),
            Some(Ok(frame)) => {
                if let Ok(chunk) = frame.into_data() {
                    bytes.extend_from_slice(&chunk);
                }
            }
            Some(Err(fault)) => return Err(fault.into()),
        }
    }
}

/// Why a body is not what was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    #[error("the body is not the one that was signed")]
    Mismatch,
    #[error("the body broke off")]
    Broken,
    #[error("the body did not come")]
    Slow,
}

impl From<BodyFault> for ApiError {
    fn from(fault: BodyFault) -> Self {
        match fault {
            BodyFault::Mismatch => Self::unauthorized(ErrorCode::BodyMismatch),
            BodyFault::Broken | BodyFault::Slow => Self::invalid(fault.to_string()),
        }
    }
}

/// The body of a request whose signature is right. It is hashed on its way through, and its last
/// bytes are given out only when all of it is what was signed: whoever it is passed on to never
/// has the whole of another one.
pub(crate) struct SignedBody {
    incoming: Incoming,
    verified: Verified,
    hash: Option<ring::digest::Context>,
    left: u64,
    /// When patience with the next part ends.
    deadline: Pin<Box<Sleep>>,
    fault: Fault,
    progress: Progress,
}

/// When a body was last moved on, for whoever waits for what comes of it.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Arc<Mutex<Instant>>);

impl Progress {
    /// From now on.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    /// A part has gone.
    pub(crate) fn moved(&self) {
        *lock(&self.0) = Instant::now();
    }

    /// Returns when nothing has moved for so long.
    pub(crate) async fn until_still_for(&self, long: Duration) {
        loop {
            let end = *lock(&self.0) + long;
            if Instant::now() >= end {
                return;
            }
            sleep_until(end).await;
        }
    }
}

/// What was wrong with a body, for whoever has passed it on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fault(Arc<OnceLock<BodyFault>>);

impl Fault {
    pub(crate) fn get(&self) -> Option<BodyFault> {
        self.0.get().copied()
    }
}

impl SignedBody {
    /// The body that comes with a verified request. An empty one is looked at here and now.
    pub(crate) fn new(incoming: Incoming, verified: Verified) -> Result<Self, ApiError> {
        if verified.content_length == 0 && verified.body != BodyDigest::of(b"") {
            return Err(BodyFault::Mismatch.into());
        }
        Ok(Self {
            incoming,
            verified,
            hash: Some(ring::digest::Context::new(&ring::digest::SHA256)),
            left: verified.content_length,
            deadline: Box::pin(sleep_until(Instant::now() + PATIENCE)),
            fault: Fault::default(),
            progress: Progress::new(),
        })
    }

    /// Where it will stand what was wrong with it.
    pub(crate) fn fault(&self) -> Fault {
        self.fault.clone()
    }

    /// Where it will stand when a part of it was last given out.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Reads what is left of it. Says whether the connection can be used on.
    pub(crate) async fn discard(&mut self) -> bool {
        discard(&mut self.incoming).await
    }

    fn take(&mut self, chunk: &Bytes) -> Result<(), BodyFault> {
        let length = chunk.len() as u64;
        self.left = self.left.checked_sub(length).ok_or(BodyFault::Broken)?;
        if let Some(hash) = &mut self.hash {
            hash.update(chunk);
        }
        if self.left == 0
            && let Some(hash) = self.hash.take()
            && hash.finish().as_ref() != self.verified.body.as_bytes()
        {
            return Err(BodyFault::Mismatch);
        }
        self.deadline.as_mut().reset(Instant::now() + PATIENCE);
        self.progress.moved();
        Ok(())
    }

    fn fail(&mut self, fault: BodyFault) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        // The first fault is the one that counts.
        let _ = self.fault.0.set(fault);
        Poll::Ready(Some(Err(fault)))
    }
}

impl Body for SignedBody {
    type Data = Bytes;
    type Error = BodyFault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyFault>>> {
        let this = self.get_mut();
        loop {
            let Poll::Ready(next) = Pin::new(&mut this.incoming).poll_frame(context) else {
                ready!(this.deadline.as_mut().poll(context));
                return this.fail(BodyFault::Slow);
            };
            match next {
                Some(Ok(frame)) => {
                    // Trailers need a transfer coding, which is refused before.
                    if let Ok(chunk) = frame.into_data()
                        && !chunk.is_empty()
                    {
                        return match this.take(&chunk) {
                            Ok(()) => Poll::Ready(Some(Ok(Frame::data(chunk)))),
                            Err(fault) => this.fail(fault),
                        };
                    }
                }
                None if this.left == 0 => return Poll::Ready(None),
                Some(Err(_)) | None => return this.fail(BodyFault::Broken),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// Reads what is left of a body that nobody wants. Says whether the connection can be used on.
pub(crate) async fn discard(incoming: &mut Incoming) -> bool {
    let left = incoming.size_hint().exact();
    if left.is_none_or(|left| left > MAX_UNWANTED) {
        return false;
    }
    loop {
        match timeout(PATIENCE, incoming.frame()).await {
            Ok(None) => return true,
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(_))) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn patience_begins_anew_with_every_part() {
        let began = Instant::now();
        let long = Duration::from_secs(100);
        let progress = Progress::new();
        let parts = async {
            for second in [60, 120, 180] {
                sleep_until(began + Duration::from_secs(second)).await;
                progress.moved();
            }
        };
        tokio::join!(progress.until_still_for(long), parts);
        assert_eq!(began.elapsed(), Duration::from_secs(280));
    }
}
