//! Listeners that say who they are to whoever gets through.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::time::Duration;

use glovebox_protocol::ids::ExecutionId;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, UdpSocket, UnixListener};
use tokio::time::timeout;

use crate::config::interfaces;

/// What whoever gets through reads.
pub(super) const BANNER: &[u8] = b"glovebox canary\n";

/// Longest question for a name, in bytes, and what every one begins with.
const MAX_QUESTION: usize = 512;
const DNS_HEADER: usize = 12;

/// The code of an answer for a name that is not known.
const NO_SUCH_NAME: u8 = 3;

/// Most addresses of the host that are opened.
const MAX_ADDRESSES: usize = 8;

/// What the gateway listens at for a canary.
pub(super) struct Opened {
    pub(super) tcp: Vec<(SocketAddr, TcpListener)>,
    /// What answers questions for names, at the same addresses.
    pub(super) udp: Vec<(SocketAddr, UdpSocket)>,
    /// Its name, without the leading NUL.
    pub(super) abstract_name: String,
    abstract_socket: UnixListener,
}

/// Opens two ports at each address of the host, and an abstract socket.
pub(super) async fn open() -> std::io::Result<Opened> {
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    let others = interfaces()?.into_iter().map(|one| one.address);
    addresses.extend(others.filter(|address| !address.is_loopback() && !is_link_local(*address)));
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    let (mut tcp, mut udp) = (Vec::new(), Vec::new());
    for address in addresses {
        // A host need not have version 6; version 4 on the loopback is there always.
        match TcpListener::bind((address, 0)).await {
            Ok(listener) => tcp.push((listener.local_addr()?, listener)),
            Err(error) if address == IpAddr::V4(Ipv4Addr::LOCALHOST) => return Err(error),
            Err(_) => continue,
        }
        let socket = UdpSocket::bind((address, 0)).await?;
        udp.push((socket.local_addr()?, socket));
    }
    let abstract_name = format!("glovebox-canary-{}", ExecutionId::new());
    let address = UnixAddr::from_abstract_name(&abstract_name)?;
    let socket = std::os::unix::net::UnixListener::bind_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(Opened {
        tcp,
        udp,
        abstract_name,
        abstract_socket: UnixListener::from_std(socket)?,
    })
}

/// The answer to a question for a name: that there is none. Not longer than the question, so that
/// nobody can have more sent to others than they send themselves.
fn no_such_name(question: &[u8]) -> Option<Vec<u8>> {
    let is_question = question.len() >= DNS_HEADER && question[2] & 0x80 == 0;
    is_question.then(|| {
        let mut answer = question.to_vec();
        answer[2] = 0x80 | (question[2] & 1);
        answer[3] = NO_SUCH_NAME;
        answer
    })
}

/// Needs the number of an interface, which is another one inside of a sandbox.
fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local(),
        IpAddr::V6(six) => six.is_unicast_link_local(),
    }
}

impl Opened {
    /// Answers everybody for a while.
    pub(super) async fn serve(self, long: Duration) {
        let mut tasks = tokio::task::JoinSet::new();
        for (_, listener) in self.tcp {
            tasks.spawn(async move {
                // One that breaks closes early, and so is reached by nobody.
                while let Ok((mut stream, _)) = listener.accept().await {
                    let _ = stream.write_all(BANNER).await;
                }
            });
        }
        for (_, socket) in self.udp {
            tasks.spawn(async move {
                let mut question = [0; MAX_QUESTION];
                while let Ok((length, peer)) = socket.recv_from(&mut question).await {
                    if let Some(answer) = no_such_name(&question[..length]) {
                        let _ = socket.send_to(&answer, peer).await;
                    }
                }
            });
        }
        let socket = self.abstract_socket;
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                let _ = stream.write_all(BANNER).await;
            }
        });
        let _ = timeout(long, tasks.join_all()).await;
    }
}
