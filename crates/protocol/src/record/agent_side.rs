//! What an agent makes of its standard input.

use super::window::Window;
use super::{HELLO, Kind, MAGIC, Magic, Nonce, Parsed, Tag, parse};

/// What has come from the gateway.
#[derive(Debug, PartialEq, Eq)]
pub enum FromGateway {
    /// A session begins; whatever was before it is over. The same one may be said several times.
    Hello(Nonce),
    /// A record of the session.
    Record(Kind, Vec<u8>),
    /// What follows is no record of the session: it is over. Said once.
    OutOfStep,
}

/// Takes an agent's input apart. Whatever comes, it keeps no more than what was pushed and one
/// record.
#[derive(Debug)]
pub struct FromGatewayDecoder {
    magic: Magic,
    window: Window,
    session: Option<Tag>,
}

impl FromGatewayDecoder {
    /// Waits for a hello with this magic.
    #[must_use]
    pub fn new(magic: Magic) -> Self {
        Self {
            magic,
            window: Window::default(),
            session: None,
        }
    }

    /// From here on hellos are announced by another magic.
    pub fn set_magic(&mut self, magic: Magic) {
        self.magic = magic;
    }

    /// Ends the session: what comes before the next hello is discarded.
    pub fn end_session(&mut self) {
        self.session = None;
    }

    /// Takes bytes in.
    pub fn push(&mut self, bytes: &[u8]) {
        self.window.push(bytes);
    }

    /// The next thing that is whole. A hello is found first, wherever it stands: what came before
    /// it was meant for a session that is over.
    pub fn take(&mut self) -> Option<FromGateway> {
        if let Some(begin) = self.window.find(&self.magic.0) {
            let Some(hello) = self.window.at(begin, HELLO) else {
                // The rest of it is on its way, and nothing before it counts.
                return None;
            };
            let mut nonce = [0; HELLO - MAGIC];
            nonce.copy_from_slice(&hello[MAGIC..]);
            let nonce = Nonce(nonce);
            self.window.skip_to(begin + HELLO);
            self.session = Some(nonce.tag());
            return Some(FromGateway::Hello(nonce));
        }
        let Some(tag) = self.session else {
            self.window.discard();
            return None;
        };
        match parse(self.window.rest(), tag) {
            Parsed::Part => None,
            Parsed::Foreign => {
                self.session = None;
                self.window.discard();
                Some(FromGateway::OutOfStep)
            }
            Parsed::Record(kind, length) => {
                let payload = self.window.rest()[super::HEADER..length].to_vec();
                self.window.advance(length);
                Some(FromGateway::Record(kind, payload))
            }
        }
    }
}
