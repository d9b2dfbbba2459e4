//! The control socket: one JSON document a line, each way, without ever waiting for the peer in
//! the middle of something else.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;

/// The longest line that is read, in bytes.
const LONGEST_LINE: usize = 1024 * 1024;

/// How much may wait to be read by the runtime before it counts as gone, in bytes.
const LONGEST_QUEUE: usize = 16 * 1024 * 1024;

/// The launcher's end of the control socket.
#[derive(Debug)]
pub(crate) struct Line {
    /// Until another process has taken it over, or whoever was at the other end has gone.
    socket: Option<OwnedFd>,
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
}

/// Whether the peer may say more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    Open,
    Closed,
}

impl Line {
    /// Takes the socket over.
    ///
    /// # Errors
    /// When it cannot be made non-blocking.
    pub(crate) fn new(socket: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket: Some(socket),
            incoming: Vec::new(),
            outgoing: Vec::new(),
        })
    }

    /// Reads what has arrived.
    ///
    /// # Errors
    /// When a line is too long, or the socket is broken.
    pub(crate) fn receive(&mut self) -> io::Result<Peer> {
        let Some(socket) = &self.socket else {
            return Ok(Peer::Closed);
        };
        let mut chunk = [0; 16 * 1024];
        loop {
            match rustix::io::read(socket, &mut chunk) {
                Ok(0) | Err(Errno::CONNRESET) => return Ok(Peer::Closed),
                Ok(count) => self.incoming.extend_from_slice(&chunk[..count]),
                Err(Errno::AGAIN) => return Ok(Peer::Open),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.incoming.len() > LONGEST_LINE && !self.incoming.contains(&b'\n') {
                return Err(io::Error::other("a line of the runtime is too long"));
            }
        }
    }

    /// Takes the next whole line that has been received.
    pub(crate) fn next(&mut self) -> Option<Vec<u8>> {
        let end = self.incoming.iter().position(|byte| *byte == b'\n')?;
        let rest = self.incoming.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.incoming, rest);
        line.pop();
        Some(line)
    }

    /// Waits for a whole line. `None` when the peer closes first.
    ///
    /// # Errors
    /// When a line is too long, or the socket is broken.
    pub(crate) fn wait_for_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(line) = self.next() {
                return Ok(Some(line));
            }
            let Some(socket) = &self.socket else {
                return Ok(None);
            };
            let mut fds = [PollFd::new(socket, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if self.receive()? == Peer::Closed {
                return Ok(self.next());
            }
        }
    }

    /// Sends a message as far as the peer takes it now; the rest waits for [`Self::flush`].
    ///
    /// # Errors
    /// When too much waits already, or the socket is broken.
    pub(crate) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.outgoing, message)?;
        self.outgoing.push(b'\n');
        self.flush()?;
        if self.outgoing.len() > LONGEST_QUEUE {
            return Err(io::Error::other(
                "the runtime does not read what it is told",
            ));
        }
        Ok(())
    }

    /// Goes on sending what waits.
    ///
    /// # Errors
    /// When the socket is broken.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        while !self.outgoing.is_empty() {
            let Some(socket) = &self.socket else {
                return Err(Errno::NOTCONN.into());
            };
            match rustix::net::send(socket, &self.outgoing, rustix::net::SendFlags::NOSIGNAL) {
                Ok(count) => {
                    self.outgoing.drain(..count);
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Closes this process's hold on the socket: another process has taken it over, or nobody is
    /// at the other end. It works also where there are no descriptors left, which is no reason to
    /// end boxes.
    pub(crate) fn let_go(&mut self) {
        self.socket = None;
        self.incoming.clear();
        self.outgoing.clear();
    }

    /// The socket, until it is let go of.
    pub(crate) const fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// Whether something waits to be sent.
    pub(crate) const fn waits_for_room(&self) -> bool {
        !self.outgoing.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    fn pair() -> (Line, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Line::new(ours.into()).unwrap(), theirs)
    }

    #[test]
    fn lines_are_found_however_they_arrive() {
        let (mut line, mut peer) = pair();
        peer.write_all(b"one\ntw").unwrap();
        assert_eq!(line.wait_for_line().unwrap().unwrap(), b"one");
        assert_eq!(line.next(), None);
        peer.write_all(b"o\n").unwrap();
        drop(peer);
        assert_eq!(line.wait_for_line().unwrap().unwrap(), b"two");
        assert_eq!(line.wait_for_line().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let (mut line, mut peer) = pair();
        let writer = std::thread::spawn(move || {
            // Fails once the other end has given up.
            let _ = peer.write_all(&vec![b'x'; 2 * LONGEST_LINE]);
        });
        assert!(line.wait_for_line().is_err());
        drop(line);
        writer.join().unwrap();
    }

    #[test]
    fn a_peer_that_does_not_read_is_not_waited_for() {
        let (mut line, mut peer) = pair();
        let message = "x".repeat(1024 * 1024);
        for _ in 0..4 {
            line.send(&message).unwrap();
        }
        assert!(line.waits_for_room());
        let reader = std::thread::spawn(move || {
            let mut buffer = vec![0; 4 * (1024 * 1024 + 3)];
            peer.read_exact(&mut buffer).unwrap();
        });
        while line.waits_for_room() {
            let mut fds = [PollFd::new(line.socket().unwrap(), PollFlags::OUT)];
            poll(&mut fds, None).unwrap();
            line.flush().unwrap();
        }
        reader.join().unwrap();
    }
}
