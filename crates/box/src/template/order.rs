//! What launcher and template say to each other: one JSON document a packet, over a socket that
//! the template has as descriptor 3.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::limits::Limits;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::mutation::Omissions;

/// The line's number in a template.
pub(crate) const LINE: i32 = 3;

/// The longest packet, in bytes.
const LONGEST_PACKET: usize = 16 * 1024;

/// Descriptors that come beside a packet at most: the namespaces, the wire, a door for each
/// hierarchy of control groups.
const MOST_DESCRIPTORS: usize = 32;

/// From launcher to template: copy yourself into a box. Beside it come the descriptors of the
/// box's namespaces, see [`super::namespaces`], the kernel's end of the wire, and the ways into the
/// workload's control groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    /// Repeated in the answer.
    pub(crate) id: u64,
    /// The ids inside the box.
    pub(crate) ids: AgentIds,
    /// The limits of the box.
    pub(crate) limits: Limits,
    /// Threads that numerical libraries may start by themselves.
    pub(crate) threads: u32,
    /// Whether nobody waits for the kernel yet: it may take its time to become quick.
    pub(crate) in_advance: bool,
    /// How the copy comes into the workload's control groups.
    pub(crate) groups: GroupsWay,
    /// What a test build leaves out of the seal.
    pub(crate) omissions: Omissions,
}

/// How a process comes into control groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum GroupsWay {
    /// It writes `0` to so many doors; version 1, or none at all.
    Doors(usize),
    /// It is cloned into the folder; version 2.
    Folder,
}

impl GroupsWay {
    /// How many descriptors that takes.
    #[cfg_attr(
        not(feature = "template-library"),
        expect(dead_code, reason = "only a template takes orders")
    )]
    pub(crate) const fn descriptors(self) -> usize {
        match self {
            Self::Doors(count) => count,
            Self::Folder => 1,
        }
    }
}

/// From template to launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// Everything is loaded; orders are taken.
    Ready,
    /// A copy runs in the box, sealed, as a child of the box's agent.
    Forked {
        /// From the order.
        id: u64,
        /// Its process id inside the box.
        pid: i32,
    },
    /// There is no copy. The template goes on as before.
    Refused {
        /// From the order.
        id: u64,
        /// Why.
        cause: String,
    },
    /// The template cannot go on, and ends.
    Failed {
        /// Why.
        cause: String,
        /// What to do about it, where something can be done.
        #[serde(default)]
        fix: Option<String>,
    },
}

/// Sends one packet without waiting.
///
/// # Errors
/// `EAGAIN` when the other side does not read; whatever `sendmsg` says.
pub(crate) fn send(
    line: impl AsFd,
    message: &impl Serialize,
    descriptors: &[BorrowedFd<'_>],
) -> std::io::Result<()> {
    let text = serde_json::to_vec(message)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if text.len() > LONGEST_PACKET
        || (!descriptors.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(descriptors)))
    {
        return Err(Errno::MSGSIZE.into());
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(line, &[IoSlice::new(&text)], &mut beside, flags)?;
    Ok(())
}

/// A packet that has come.
#[derive(Debug)]
pub(crate) struct Received<T> {
    pub(crate) message: T,
    /// What came beside it, to be closed at `exec`.
    #[cfg_attr(
        not(any(test, feature = "template-library")),
        expect(dead_code, reason = "nothing comes beside an answer")
    )]
    pub(crate) descriptors: Vec<OwnedFd>,
}

/// Takes the next packet. `None` when the other side has closed.
///
/// # Errors
/// `EAGAIN` when none is there and `flags` say not to wait; otherwise when the packet is not what
/// it has to be.
pub(crate) fn receive<T: DeserializeOwned>(
    line: impl AsFd,
    flags: RecvFlags,
) -> std::io::Result<Option<Received<T>>> {
    let mut text = vec![0; LONGEST_PACKET];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_DESCRIPTORS))];
    let mut beside = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut text)];
    let received = recvmsg(
        line,
        &mut parts,
        &mut beside,
        flags | RecvFlags::CMSG_CLOEXEC,
    )?;
    let descriptors: Vec<_> = beside
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if received.bytes == 0 {
        return Ok(None);
    }
    if received
        .flags
        .intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC)
    {
        return Err(Errno::MSGSIZE.into());
    }
    Ok(Some(Received {
        message: serde_json::from_slice(&text[..received.bytes])?,
        descriptors,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn line() -> (OwnedFd, OwnedFd) {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        socketpair(AddressFamily::UNIX, kind, flags, None).unwrap()
    }

    #[test]
    fn descriptors_come_beside_their_packet() {
        let (ours, theirs) = line();
        let null = fs_err::File::open("/dev/null").unwrap();
        send(&ours, &Answer::Ready, &[null.as_fd(), ours.as_fd()]).unwrap();
        send(&ours, &Answer::Ready, &[]).unwrap();
        for count in [2, 0] {
            let received = receive::<Answer>(&theirs, RecvFlags::empty()).unwrap();
            let received = received.unwrap();
            assert_eq!(received.message, Answer::Ready);
            assert_eq!(received.descriptors.len(), count);
        }
        drop(ours);
        let end = receive::<Answer>(&theirs, RecvFlags::empty()).unwrap();
        assert!(end.is_none());
    }

    #[test]
    fn a_packet_of_something_else_is_an_error_and_not_a_wait() {
        let (ours, theirs) = line();
        let dont_wait = RecvFlags::DONTWAIT;
        let error = receive::<Answer>(&theirs, dont_wait).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(Errno::AGAIN.raw_os_error()));
        rustix::io::write(&ours, b"{\"is\":\"what\"}").unwrap();
        assert!(receive::<Answer>(&theirs, dont_wait).is_err());
    }

    #[test]
    fn python_may_leave_out_what_to_do() {
        let text = r#"{"is":"failed","cause":"no module"}"#;
        assert_eq!(
            serde_json::from_str::<Answer>(text).unwrap(),
            Answer::Failed {
                cause: "no module".into(),
                fix: None
            }
        );
    }
}
