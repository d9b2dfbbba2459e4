//! Listeners that say who they are to whoever gets through.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::time::Duration;

use glovebox_protocol::ids::ExecutionId;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, UnixListener};
use tokio::time::timeout;

use crate::config::interfaces;

/// What whoever gets through reads.
pub(super) const BANNER: &[u8] = b"glovebox canary\n";

/// Most addresses of the host that are opened.
const MAX_ADDRESSES: usize = 8;

/// What the gateway listens at for a canary.
pub(super) struct Opened {
    pub(super) tcp: Vec<(SocketAddr, TcpListener)>,
    /// Its name, without the leading NUL.
    pub(super) abstract_name: String,
    abstract_socket: UnixListener,
}

/// Opens a port at each address of the host, and an abstract socket.
pub(super) async fn open() -> std::io::Result<Opened> {
    let mut addresses = vec![
        IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(Ipv6Addr::LOCALHOST),
    ];
    let others = interfaces()?.into_iter().map(|one| one.address);
    addresses.extend(others.filter(|address| !address.is_loopback() && !is_link_local(*address)));
    addresses.dedup();
    addresses.truncate(MAX_ADDRESSES);
    let mut tcp = Vec::new();
    for address in addresses {
        // A host need not have version 6; version 4 on the loopback is there always.
        match TcpListener::bind((address, 0)).await {
            Ok(listener) => tcp.push((listener.local_addr()?, listener)),
            Err(error) if address == IpAddr::V4(Ipv4Addr::LOCALHOST) => return Err(error),
            Err(_) => {}
        }
    }
    let abstract_name = format!("glovebox-canary-{}", ExecutionId::new());
    let address = UnixAddr::from_abstract_name(&abstract_name)?;
    let socket = std::os::unix::net::UnixListener::bind_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(Opened {
        tcp,
        abstract_name,
        abstract_socket: UnixListener::from_std(socket)?,
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
        let socket = self.abstract_socket;
        tasks.spawn(async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                let _ = stream.write_all(BANNER).await;
            }
        });
        let _ = timeout(long, tasks.join_all()).await;
    }
}
