//! Frames between agent and runner: four bytes of length, big endian, and a JSON object.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use bytes::{Buf as _, BytesMut};
use glovebox_protocol::file::escape_for_display;
use glovebox_protocol::frame::is_modest;
use rustix::io::ioctl_fionread;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde::Serialize;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::UnixStream;
use tokio::task::consume_budget;

use super::message::{FromKernel, Slim};

/// Longest frame in bytes: a longer one could not be passed on.
const MAX_FRAME: usize = glovebox_protocol::frame::MAX_PAYLOAD;

/// Characters of a complaint about a document that are passed on.
const MAX_COMPLAINT: usize = 200;

/// Bytes in front of each document.
const HEADER: usize = 4;

/// Bytes read at once.
const READ_BYTES: usize = 64 * 1024;

/// The runner said something that is no message, or cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WireFault {
    #[error("sent a frame of {0} bytes, over the limit of {MAX_FRAME}")]
    TooLong(usize),
    #[error("sent something that is no message: {0}")]
    NotAMessage(String),
    #[error("closed its socket in the middle of a message")]
    Cut,
    #[error("sent a message that does not belong there")]
    OutOfPlace,
    #[error("closed its socket and lived on")]
    Closed,
    #[error("could not be given pipes for its output")]
    NoPipes,
    #[error("cannot be talked to: {0}")]
    Io(std::io::Error),
}

/// The agent's end of the socket.
pub(crate) struct Wire {
    stream: UnixStream,
    unread: BytesMut,
    /// What is left of an acknowledgement that did not fit into the socket.
    unsent: BytesMut,
    /// The highest number to acknowledge; it stands for all lower ones. A runner that is busy
    /// reads none of them, so they are never waited for.
    due: Option<u64>,
    /// How often something was read.
    readings: u64,
}

impl Wire {
    /// The agent's end, and the runner's.
    pub(crate) fn pair() -> std::io::Result<(Self, OwnedFd)> {
        let (ours, theirs) = UnixStream::pair()?;
        let theirs = theirs.into_std()?;
        theirs.set_nonblocking(false)?;
        Ok((Self::new(ours), theirs.into()))
    }

    /// The agent's end of a socket that was made elsewhere.
    pub(crate) fn from_descriptor(ours: OwnedFd) -> std::io::Result<Self> {
        let ours = std::os::unix::net::UnixStream::from(ours);
        ours.set_nonblocking(true)?;
        Ok(Self::new(UnixStream::from_std(ours)?))
    }

    fn new(stream: UnixStream) -> Self {
        Self {
            stream,
            unread: BytesMut::new(),
            unsent: BytesMut::new(),
            due: None,
            readings: 0,
        }
    }

    /// The next message; nothing when the runner has closed its end. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self) -> Result<Option<FromKernel>, WireFault> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
            }
            // Where something is unsent, a socket with room is looked at without a wait.
            consume_budget().await;
            self.flush();
            match self.read().await {
                Ok(0) => return self.end(),
                Ok(_) => self.readings += 1,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // A peer that ends with unread data in its socket resets the connection.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return self.end(),
                Err(error) => return Err(WireFault::Io(error)),
            }
        }
    }

    /// Bytes that are here and were not read yet.
    pub(crate) fn bytes_here(&self) -> u64 {
        ioctl_fionread(&self.stream).unwrap_or(0)
    }

    /// The next message of those that are here already, out of at most `left` more bytes: a
    /// forked child may go on writing for ever.
    pub(crate) fn next_here(&mut self, left: &mut u64) -> Result<Option<FromKernel>, WireFault> {
        loop {
            if let Some(message) = self.buffered()? {
                return Ok(Some(message));
            }
            if *left == 0 {
                return Ok(None);
            }
            // Past the event loop, which may not have heard of what is there.
            let mut room = [0; READ_BYTES];
            match rustix::io::read(&self.stream, &mut room) {
                Ok(0) | Err(_) => return Ok(None),
                Ok(read) => {
                    self.unread.extend_from_slice(&room[..read]);
                    *left = left.saturating_sub(read as u64);
                }
            }
        }
    }

    /// How often something was read. Messages of one reading were all sent before it.
    pub(crate) const fn readings(&self) -> u64 {
        self.readings
    }

    /// Reads what comes next; or nothing, where there is room again for what is unsent.
    async fn read(&mut self) -> std::io::Result<usize> {
        self.unread.reserve(READ_BYTES);
        if self.unsent.is_empty() {
            return self.stream.read_buf(&mut self.unread).await;
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.stream.ready(interest).await?;
        self.stream.try_read_buf(&mut self.unread)
    }

    fn end(&self) -> Result<Option<FromKernel>, WireFault> {
        if self.unread.is_empty() {
            Ok(None)
        } else {
            Err(WireFault::Cut)
        }
    }

    fn buffered(&mut self) -> Result<Option<FromKernel>, WireFault> {
        take_message(&mut self.unread)
    }

    /// Acknowledges everything up to a number, as soon as the socket has room.
    pub(crate) fn acknowledge(&mut self, seq: u64) {
        self.due = self.due.max(Some(seq));
        self.flush();
    }

    fn flush(&mut self) {
        loop {
            if self.unsent.is_empty() {
                let Some(seq) = self.due.take() else { return };
                self.unsent
                    .extend_from_slice(&frame(&json!({"type": "ack", "seq": seq})));
            }
            match self.stream.try_write(&self.unsent) {
                Ok(written) => self.unsent.advance(written),
                // The runner reads no more, but may go on writing. Such a socket counts as one
                // with room, so that what stayed unsent would be tried again and again.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    self.unsent = BytesMut::new();
                }
                // No room yet, or nobody there, which shows when reading.
                Err(_) => return,
            }
        }
    }

    /// Sends code to run, as a [`frame`], with the descriptors that its output goes to beside the
    /// first byte.
    pub(crate) async fn send_execute(
        &mut self,
        frame: &[u8],
        descriptors: &[OwnedFd],
    ) -> std::io::Result<()> {
        let unsent = std::mem::take(&mut self.unsent);
        self.stream.write_all(&unsent).await?;
        let descriptors: Vec<_> = descriptors.iter().map(OwnedFd::as_fd).collect();
        let sent = self
            .stream
            .async_io(Interest::WRITABLE, || {
                send_first(&self.stream, frame, &descriptors)
            })
            .await?;
        self.stream.write_all(&frame[sent..]).await
    }

    /// Gives the runner variables for the environment of its process.
    pub(crate) async fn send_environment(
        &mut self,
        variables: &BTreeMap<String, String>,
    ) -> std::io::Result<()> {
        let document = json!({"type": "environment", "variables": variables});
        self.stream.write_all(&frame(&document)).await
    }

    /// Tells the runner that its first call is near. Nothing waits for it, and where there is no
    /// room it is sent later.
    pub(crate) fn send_warm(&mut self) {
        self.unsent
            .extend_from_slice(&frame(&json!({"type": "warm"})));
        self.flush();
    }

    /// Asks the runner to end.
    pub(crate) async fn send_shutdown(&mut self) -> std::io::Result<()> {
        self.stream
            .write_all(&frame(&json!({"type": "shutdown"})))
            .await
    }
}

fn send_first(
    stream: &UnixStream,
    frame: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> std::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(ErrorKind::InvalidInput.into());
    }
    let sent = sendmsg(
        stream,
        &[IoSlice::new(frame)],
        &mut ancillary,
        SendFlags::NOSIGNAL,
    )?;
    Ok(sent)
}

/// A document behind its length.
pub(crate) fn frame(document: &impl Serialize) -> Vec<u8> {
    let mut frame = vec![0; HEADER];
    // Only a map with keys that are no strings could fail, and none is ever sent.
    let _ = serde_json::to_writer(&mut frame, document);
    let length = u32::try_from(frame.len() - HEADER).unwrap_or(u32::MAX);
    frame[..HEADER].copy_from_slice(&length.to_be_bytes());
    frame
}

/// Takes the first whole message out of what came.
fn take_message(unread: &mut BytesMut) -> Result<Option<FromKernel>, WireFault> {
    let Some(header) = unread.first_chunk::<HEADER>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*header) as usize;
    if length > MAX_FRAME {
        return Err(WireFault::TooLong(length));
    }
    if unread.len() < HEADER + length {
        return Ok(None);
    }
    unread.advance(HEADER);
    let document = unread.split_to(length);
    let message = if is_modest(&document) {
        serde_json::from_slice(&document)
    } else {
        serde_json::from_slice(&document).map(Slim::without_content)
    };
    let message = message.map_err(|error| WireFault::NotAMessage(brief(&error)))?;
    if unread.is_empty() {
        // A long message leaves a large buffer behind; an idle kernel needs none.
        *unread = BytesMut::new();
    }
    Ok(Some(message))
}

/// What is wrong with a document, without more of the document than a person would read: the
/// parser repeats words of it.
fn brief(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let start: String = text.chars().take(MAX_COMPLAINT).collect();
    let cut = if start.len() < text.len() { "…" } else { "" };
    escape_for_display(start.as_bytes()) + cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hostile_length_is_refused_before_anything_is_kept() {
        let mut unread = BytesMut::from(&[0xff; 4][..]);
        assert!(matches!(
            take_message(&mut unread),
            Err(WireFault::TooLong(_))
        ));
    }

    #[test]
    fn messages_survive_being_cut_anywhere() {
        let wire = [
            frame(&json!({"type": "ready", "language": "python 3"})),
            frame(&json!({"type": "ready", "language": "\u{1f427}"})),
        ]
        .concat();
        for cut in 1..wire.len() {
            let mut unread = BytesMut::new();
            let mut languages = Vec::new();
            for chunk in wire.chunks(cut) {
                unread.extend_from_slice(chunk);
                while let Some(message) = take_message(&mut unread).unwrap() {
                    if let FromKernel::Ready { language } = message {
                        languages.push(language);
                    }
                }
            }
            assert_eq!(languages, ["python 3", "\u{1f427}"], "cut into {cut}");
        }
    }

    #[test]
    fn a_complaint_about_a_document_is_short_and_harmless() {
        let word = "\u{1b}[2J".repeat(100_000);
        let document = json!({"type": word}).to_string();
        let mut wire = u32::try_from(document.len())
            .unwrap()
            .to_be_bytes()
            .to_vec();
        wire.extend_from_slice(document.as_bytes());
        let fault = take_message(&mut BytesMut::from(&wire[..])).unwrap_err();
        let said = fault.to_string();
        assert!(said.len() < 2000, "{}", said.len());
        assert!(!said.contains('\u{1b}'), "{said}");
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_wire_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut unread = BytesMut::from(&bytes[..]);
            while let Ok(Some(_)) = take_message(&mut unread) {}
        }

        #[test]
        fn no_document_makes_the_wire_panic(document in "\\PC{0,100}") {
            let mut wire = u32::try_from(document.len()).unwrap().to_be_bytes().to_vec();
            wire.extend_from_slice(document.as_bytes());
            let _ = take_message(&mut BytesMut::from(&wire[..]));
        }
    }
}
