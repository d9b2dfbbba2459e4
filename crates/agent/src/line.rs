//! The line to the launcher: takes its packets one by one, and sends it what the agent wants.
//!
//! What the packets mean is decided in [`crate::orders`].

use std::io::{ErrorKind, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;

use glovebox_protocol::launcher_line::{FromAgent, MAX_TO_AGENT, ToAgent};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use tokio::io::Interest;
use tokio::net::UnixDatagram;

use crate::lock::Locked;

/// The agent's end.
pub(crate) struct Line {
    /// In truth of the kind that also tells its end; both keep packets apart.
    socket: UnixDatagram,
    /// Whether the launcher's end is closed. Held while packets are taken, so that they stay in
    /// their order.
    closed: Locked<bool>,
}

/// One packet of the launcher's.
#[derive(Debug)]
pub(crate) enum Packet {
    /// What it says, and the descriptor that came with it.
    Order(ToAgent, Option<OwnedFd>),
    /// It is not one that this agent knows; what is wrong with it, in words.
    Unknown(String),
}

impl Line {
    /// Takes the line over. To be called within a Tokio runtime.
    pub(crate) fn new(socket: OwnedFd) -> std::io::Result<Self> {
        let socket = std::os::unix::net::UnixDatagram::from(socket);
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket: UnixDatagram::from_std(socket)?,
            closed: Locked::default(),
        })
    }

    /// Calls `work` for each packet that is here by now, in their order, also where several tasks
    /// do so at once. Says whether more can come.
    pub(crate) fn take(&self, mut work: impl FnMut(Packet)) -> bool {
        self.closed.with(|closed| {
            while !*closed {
                match self.next_here() {
                    Ok(Some(packet)) => work(packet),
                    Ok(None) => *closed = true,
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return true,
                    Err(_) => *closed = true,
                }
            }
            false
        })
    }

    /// Calls `work` for each packet as it comes, until the launcher closes its end.
    pub(crate) async fn serve(&self, mut work: impl FnMut(Packet)) {
        while self.socket.readable().await.is_ok() {
            let ended = self.socket.try_io(Interest::READABLE, || {
                match self.take(&mut work) {
                    // Until the event loop hears of more.
                    true => Err(ErrorKind::WouldBlock.into()),
                    false => Ok(()),
                }
            });
            if ended.is_ok() {
                return;
            }
        }
    }

    /// Sends a packet. It fails where the launcher is gone; it never waits, because the agent
    /// sends no more packets than the launcher has answered.
    pub(crate) fn send(&self, message: FromAgent) -> std::io::Result<()> {
        let packet = serde_json::to_vec(&message)?;
        send(
            &self.socket,
            &packet,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        )?;
        Ok(())
    }

    /// The next packet; nothing at the end.
    fn next_here(&self) -> Result<Option<Packet>, Errno> {
        let mut bytes = vec![0; MAX_TO_AGENT];
        // Room for one descriptor: Linux closes those that are too many.
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            &self.socket,
            &mut [IoSliceMut::new(&mut bytes)],
            &mut ancillary,
            RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC,
        )?;
        if received.bytes == 0 {
            return Ok(None);
        }
        let descriptor = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        Ok(Some(
            match serde_json::from_slice(&bytes[..received.bytes]) {
                Ok(order) => Packet::Order(order, descriptor),
                Err(error) => Packet::Unknown(error.to_string()),
            },
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::io::IoSlice;
    use std::os::fd::AsFd as _;

    use rustix::net::{
        AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SocketFlags, SocketType, sendmsg,
        socketpair,
    };

    use super::*;

    fn pair() -> (Line, OwnedFd) {
        let (ours, theirs) = socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        (Line::new(ours).unwrap(), theirs)
    }

    fn say(launcher: &OwnedFd, text: &str) {
        send(launcher, text.as_bytes(), SendFlags::empty()).unwrap();
    }

    fn taken(line: &Line) -> (Vec<Packet>, bool) {
        let mut packets = Vec::new();
        let more = line.take(|packet| packets.push(packet));
        (packets, more)
    }

    #[tokio::test]
    async fn packets_are_taken_one_by_one_without_a_wait() {
        let (line, launcher) = pair();
        assert!(matches!(taken(&line), (packets, true) if packets.is_empty()));
        say(&launcher, r#"{"is":"prepare_kernel"}"#);
        say(&launcher, "nonsense");
        say(&launcher, r#"{"is":"no_kernel","reason":"none"}"#);
        let (packets, more) = taken(&line);
        assert!(more);
        assert!(matches!(
            &packets[..],
            [
                Packet::Order(ToAgent::PrepareKernel, None),
                Packet::Unknown(_),
                Packet::Order(ToAgent::NoKernel { .. }, None),
            ]
        ));
    }

    #[tokio::test]
    async fn one_descriptor_is_taken_and_closes_itself_in_programs() {
        let (line, launcher) = pair();
        let (read, write) = rustix::pipe::pipe().unwrap();
        let descriptors = [read.as_fd(), write.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let text = br#"{"is":"kernel","pid":2}"#;
        sendmsg(
            &launcher,
            &[IoSlice::new(text)],
            &mut ancillary,
            SendFlags::empty(),
        )
        .unwrap();
        let (packets, _) = taken(&line);
        let [Packet::Order(ToAgent::Kernel { pid: 2 }, Some(descriptor))] = &packets[..] else {
            panic!("{packets:?}")
        };
        let flags = rustix::io::fcntl_getfd(descriptor).unwrap();
        assert!(flags.contains(rustix::io::FdFlags::CLOEXEC));
        drop((packets, write));
        // The second one was not kept: with the last writer gone the pipe has an end.
        assert_eq!(rustix::io::read(&read, &mut [0]), Ok(0));
    }

    #[tokio::test]
    async fn a_closed_line_ends_the_service_and_takes_nothing_more() {
        let (line, launcher) = pair();
        say(&launcher, r#"{"is":"prepare_kernel"}"#);
        drop(launcher);
        let mut seen = 0;
        line.serve(|_| seen += 1).await;
        assert_eq!(seen, 1);
        assert!(matches!(taken(&line), (packets, false) if packets.is_empty()));
        assert!(line.send(FromAgent::KernelWanted).is_err());
    }
}
