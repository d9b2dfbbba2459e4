//! What a gateway makes of an agent's standard output. All of it is hostile.

use super::window::Window;
use super::{Kind, NONCE, Nonce, Parsed, encode, parse};

/// What came is no record of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the agent sent what is no record of this session")]
pub struct OutOfStep;

/// Takes an agent's output apart. What comes before the acknowledgement is discarded as it comes,
/// however much it is.
#[derive(Debug)]
pub struct FromAgentDecoder {
    nonce: Nonce,
    acknowledgement: Vec<u8>,
    window: Window,
    begun: bool,
}

impl FromAgentDecoder {
    /// Waits for the acknowledgement of the hello with this nonce.
    #[must_use]
    pub fn new(nonce: Nonce) -> Self {
        Self {
            // A nonce is never too long for a record.
            acknowledgement: encode(nonce.tag(), Kind::Ack, &nonce.0).unwrap_or_default(),
            nonce,
            window: Window::default(),
            begun: false,
        }
    }

    /// Whether the acknowledgement has come.
    #[must_use]
    pub const fn has_begun(&self) -> bool {
        self.begun
    }

    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.window.push(bytes);
    }

    /// Looks for the acknowledgement, and says whether it has come. Records behind it are left for
    /// [`FromAgentDecoder::take`].
    pub fn begin(&mut self) -> bool {
        if !self.begun {
            match self.window.find(&self.acknowledgement) {
                Some(begin) => {
                    self.window.skip_to(begin + self.acknowledgement.len());
                    self.begun = true;
                }
                None => self.window.discard(),
            }
        }
        self.begun
    }

    /// The next record that is whole. Acknowledgements of repeated hellos are passed over.
    ///
    /// # Errors
    /// When what comes is no record of this session; then nothing more can be had of it.
    pub fn take(&mut self) -> Result<Option<(Kind, Vec<u8>)>, OutOfStep> {
        if !self.begin() {
            return Ok(None);
        }
        loop {
            match parse(self.window.rest(), self.nonce.tag()) {
                Parsed::Part => return Ok(None),
                Parsed::Foreign => return Err(OutOfStep),
                Parsed::Record(kind, length) => {
                    let payload = self.window.rest()[super::HEADER..length].to_vec();
                    self.window.skip_rest(length);
                    match kind {
                        Kind::Ack if payload.len() == NONCE && payload == self.nonce.0 => {}
                        Kind::Ack | Kind::Config | Kind::Alive => return Err(OutOfStep),
                        kind => return Ok(Some((kind, payload))),
                    }
                }
            }
        }
    }
}
