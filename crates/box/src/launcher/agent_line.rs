//! The launcher's end of the line to one agent.
//!
//! An agent may be under somebody else's control: what comes from it is read as two words and
//! nothing else, and an agent that breaks the rules is not listened to any more.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use glovebox_protocol::launcher_line::{FromAgent, MAX_FROM_AGENT, MAX_TO_AGENT, ToAgent};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::events::Watched;

/// The line, until it is closed by either side.
#[derive(Debug)]
pub(super) struct AgentLine(Option<Watched<OwnedFd>>);

/// What an agent has said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// Nothing more, for now or for good.
    Nothing,
    /// A word.
    Word(FromAgent),
    /// Something that is against the rules. The line is closed.
    Breach(&'static str),
}

impl AgentLine {
    pub(super) const fn new(socket: Watched<OwnedFd>) -> Self {
        Self(Some(socket))
    }

    /// Takes the next thing that was said. Descriptors that come beside it are never taken over:
    /// there is no place for them in this call.
    pub(super) fn hear(&mut self) -> Heard {
        let Some(socket) = &self.0 else {
            return Heard::Nothing;
        };
        let mut packet = [0; MAX_FROM_AGENT];
        let received = loop {
            let mut parts = [IoSliceMut::new(&mut packet)];
            let mut beside = RecvAncillaryBuffer::default();
            match recvmsg(socket.get(), &mut parts, &mut beside, RecvFlags::empty()) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        match received {
            Err(Errno::AGAIN) => Heard::Nothing,
            Ok(received) if received.flags.contains(ReturnFlags::CTRUNC) => {
                self.breach("a descriptor")
            }
            Ok(received) if received.flags.contains(ReturnFlags::TRUNC) => {
                self.breach("a packet that is too long")
            }
            // An empty packet cannot be told from the end.
            Ok(received) if received.bytes == 0 => {
                self.close();
                Heard::Nothing
            }
            Ok(received) => match serde_json::from_slice(&packet[..received.bytes]) {
                Ok(word) => Heard::Word(word),
                Err(_) => self.breach("a packet that is no word"),
            },
            Err(_) => {
                self.close();
                Heard::Nothing
            }
        }
    }

    fn breach(&mut self, what: &'static str) -> Heard {
        self.close();
        Heard::Breach(what)
    }

    /// Says something, with a descriptor beside it or without.
    ///
    /// # Errors
    /// When the agent does not listen, or has closed its end; whatever `sendmsg` says.
    pub(super) fn tell(
        &self,
        message: &ToAgent,
        beside: Option<BorrowedFd<'_>>,
    ) -> std::io::Result<()> {
        let Some(socket) = &self.0 else {
            return Err(Errno::PIPE.into());
        };
        let text = serde_json::to_vec(message)?;
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = beside.as_slice();
        if text.len() > MAX_TO_AGENT
            || (!fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)))
        {
            return Err(Errno::MSGSIZE.into());
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        sendmsg(socket.get(), &[IoSlice::new(&text)], &mut control, flags)?;
        Ok(())
    }

    /// Neither listens any more nor says anything.
    pub(super) fn close(&mut self) {
        self.0 = None;
    }
}
