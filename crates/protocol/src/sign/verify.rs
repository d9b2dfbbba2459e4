//! What a receiver checks before it believes a request.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use super::headers::Signature;
use super::{BodyDigest, Envelope, Epoch, Nonce, PublicKey, SignedHeaders};
use crate::ids::InstallationId;

/// How far a request's time may be from the receiver's, in milliseconds, either way.
pub const WINDOW_MS: i64 = 60_000;

/// How long a request can be believed at most after it was taken: one that came from a window ahead
/// is valid for two.
const LONGEST: Duration = Duration::from_millis(2 * WINDOW_MS.unsigned_abs());

/// From how far off on a sender is to be warned that one of the two clocks is wrong, in
/// milliseconds, either way.
pub const WARN_MS: i64 = 30_000;

/// A receiver's time, by both of its clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Milliseconds since 1970 (UTC). It can be set, forwards and back.
    pub unix_ms: i64,
    /// What nobody sets.
    pub steady: Instant,
}

/// Why a request was not believed. The caller shows the code and none of the detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The key is unknown, the epoch another one, or the signature wrong. These are one case on
    /// purpose: a forger learns nothing from which it was.
    #[error("the signature is not valid for this receiver")]
    Rejected,
    /// The signature is right and its time is out of the window.
    #[error("the request's time is {off_ms} ms off")]
    ClockSkew {
        /// Request time minus receiver time, in milliseconds.
        off_ms: i64,
    },
    /// The signature is right and was seen before.
    #[error("the request was already seen")]
    Replayed,
}

/// Those whose signatures a receiver believes.
pub trait Signers {
    /// A signature as they make it.
    type Signature: Signature;

    /// Whether one of them, the one that the envelope names, has signed it.
    fn have_signed(&self, envelope: &Envelope<'_>, signature: &Self::Signature) -> bool;
}

impl Signers for Vec<PublicKey> {
    type Signature = [u8; 64];

    fn have_signed(&self, envelope: &Envelope<'_>, signature: &[u8; 64]) -> bool {
        self.iter()
            .any(|key| key.id() == envelope.key && key.has_signed(envelope, signature))
    }
}

/// What a verified request may still do: send exactly this body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// SHA-256 that the body must have.
    pub body: BodyDigest,
    /// Length that the body must have, in bytes.
    pub content_length: u64,
    /// Time of the request minus the receiver's time, in milliseconds.
    pub off_ms: i64,
}

/// Checks signatures for one receiver in one of its lives, and remembers nonces.
///
/// The signers are an agent's public keys or a gateway's [`Credentials`](super::Credentials).
#[derive(Debug)]
pub struct Verifier<S = Vec<PublicKey>> {
    installation: InstallationId,
    audience: String,
    epoch: Epoch,
    signers: S,
    seen: HashSet<Nonce>,
    /// Nonces by the time at which the window has closed over them, and from when on they may be
    /// forgotten by the clock that nobody sets.
    expiry: BTreeMap<(i64, [u8; 16]), Instant>,
}

impl<S: Signers> Verifier<S> {
    /// A verifier that has seen nothing yet.
    #[must_use]
    pub fn new(installation: InstallationId, audience: String, epoch: Epoch, signers: S) -> Self {
        Self {
            installation,
            audience,
            epoch,
            signers,
            seen: HashSet::new(),
            expiry: BTreeMap::new(),
        }
    }

    /// The epoch that requests have to name.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Believes other signers from now on. What was seen stays seen.
    pub fn set_signers(&mut self, signers: S) {
        self.signers = signers;
    }

    /// Decides on one request from its request line and headers.
    ///
    /// Only a request with a right signature, time and nonce is remembered, so that nobody
    /// without the key can fill the memory.
    ///
    /// # Errors
    /// A [`Refusal`]; nothing of the request may have had an effect by then.
    pub fn verify(
        &mut self,
        method: &str,
        path_and_query: &str,
        content_length: u64,
        headers: &SignedHeaders<S::Signature>,
        now: Now,
    ) -> Result<Verified, Refusal> {
        let envelope = Envelope {
            installation: self.installation,
            audience: &self.audience,
            epoch: self.epoch,
            method,
            path_and_query,
            content_length,
            body: headers.body,
            unix_ms: headers.unix_ms,
            nonce: headers.nonce,
            key: headers.key,
        };
        if headers.epoch != self.epoch || !self.signers.have_signed(&envelope, &headers.signature) {
            return Err(Refusal::Rejected);
        }
        let off_ms = headers.unix_ms.saturating_sub(now.unix_ms);
        if off_ms.abs() > WINDOW_MS {
            return Err(Refusal::ClockSkew { off_ms });
        }
        self.forget_before(now);
        if !self.seen.insert(headers.nonce) {
            return Err(Refusal::Replayed);
        }
        // A request from the future stays valid for longer than one window.
        let until_ms = headers.unix_ms.max(now.unix_ms).saturating_add(WINDOW_MS);
        let key = (until_ms, *headers.nonce.as_bytes());
        self.expiry.insert(key, now.steady + LONGEST);
        Ok(Verified {
            body: headers.body,
            content_length,
            off_ms,
        })
    }

    /// A nonce goes when both clocks say that its request is too old. By the one that can be set
    /// alone, a leap forwards and back would make requests good once more; by the other alone, one
    /// back would.
    fn forget_before(&mut self, now: Now) {
        while let Some(first) = self.expiry.first_entry() {
            let (until_ms, nonce) = *first.key();
            if until_ms >= now.unix_ms || *first.get() >= now.steady {
                break;
            }
            first.remove();
            self.seen.remove(&Nonce(nonce));
        }
    }
}
