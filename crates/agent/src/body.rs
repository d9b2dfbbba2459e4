//! Bodies of requests, tied to what their signature promised.

use std::time::Duration;

use bytes::Bytes;
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::sign::{BodyDigest, Verified};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use crate::error::ApiError;

/// Most bytes of a JSON document that is no code.
pub(crate) const MAX_JSON: u64 = 1024 * 1024;

/// Most bytes of an execute.
pub(crate) const MAX_EXECUTE: u64 = 16 * 1024 * 1024;

/// A body as long as this is read to its end though nobody wants it, so that a client that is
/// still sending gets to read the answer. Of a longer one the connection is cut.
const MAX_UNWANTED: u64 = 64 * 1024 * 1024;

/// How long the next part of a body may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The body of a request whose signature is right; the body itself is not believed yet.
pub(crate) struct SignedBody {
    incoming: Incoming,
    verified: Verified,
}

impl SignedBody {
    pub(crate) const fn new(incoming: Incoming, verified: Verified) -> Self {
        Self { incoming, verified }
    }

    /// Its length in bytes, as signed. The HTTP library delivers exactly as many or fails.
    pub(crate) const fn length(&self) -> u64 {
        self.verified.content_length
    }

    /// Whether this is what was signed.
    pub(crate) fn check(&self, digest: BodyDigest) -> Result<(), ApiError> {
        if digest == self.verified.body {
            Ok(())
        } else {
            Err(ApiError::unauthorized(ErrorCode::BodyMismatch))
        }
    }

    /// The next chunks, of at least `bytes` together unless the body ends. Empty at the end.
    pub(crate) async fn batch(&mut self, bytes: usize) -> Result<Vec<Bytes>, ApiError> {
        let mut batch = Vec::new();
        let mut gathered = 0;
        while gathered < bytes {
            let next = timeout(PATIENCE, self.incoming.frame()).await;
            match next.map_err(|_| ApiError::invalid("the body did not come"))? {
                None => break,
                Some(Ok(frame)) => {
                    if let Ok(chunk) = frame.into_data() {
                        gathered += chunk.len();
                        batch.push(chunk);
                    }
                }
                Some(Err(error)) => {
                    return Err(ApiError::invalid(format!("the body broke off: {error}")));
                }
            }
        }
        Ok(batch)
    }

    /// All of it, verified.
    pub(crate) async fn whole(&mut self, limit: u64) -> Result<Bytes, ApiError> {
        if self.length() > limit {
            return Err(ApiError::body_too_large(limit));
        }
        let length = usize::try_from(self.length()).map_err(|_| ApiError::body_too_large(limit))?;
        let mut first = self.batch(1).await?;
        let body = match first.pop() {
            Some(only) if only.len() == length => only,
            first => self.gather(first, length).await?,
        };
        self.check(BodyDigest::of(&body))?;
        Ok(body)
    }

    /// The body in one piece of just its size: a long one fits into the agent's memory no more
    /// often than it has to.
    async fn gather(&mut self, first: Option<Bytes>, length: usize) -> Result<Bytes, ApiError> {
        let mut body = Vec::with_capacity(length);
        body.extend_from_slice(&first.unwrap_or_default());
        loop {
            let more = self.batch(1).await?;
            if more.is_empty() {
                return Ok(body.into());
            }
            more.iter().for_each(|chunk| body.extend_from_slice(chunk));
        }
    }

    /// The document that it is, verified before it is parsed.
    pub(crate) async fn json<T: DeserializeOwned>(&mut self, limit: u64) -> Result<T, ApiError> {
        let body = self.whole(limit).await?;
        serde_json::from_slice(&body)
            .map_err(|error| ApiError::invalid(format!("the body is not as it has to be: {error}")))
    }

    /// Makes sure that there is none.
    pub(crate) async fn empty(&mut self) -> Result<(), ApiError> {
        self.whole(0).await.map(drop)
    }
}

/// Reads what is left of a body that nobody wants. Says whether the connection can be used on.
pub(crate) async fn discard(incoming: &mut Incoming) -> bool {
    if incoming
        .size_hint()
        .exact()
        .is_none_or(|left| left > MAX_UNWANTED)
    {
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

impl SignedBody {
    /// See [`discard`].
    pub(crate) async fn discard(&mut self) -> bool {
        discard(&mut self.incoming).await
    }
}
