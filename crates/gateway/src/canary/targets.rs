//! What a sandbox is to try.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use glovebox_protocol::gateway::{CanaryTarget, Expected, Reach, Resolver};
use glovebox_protocol::ids::ExecutionId;
use tokio::net::{TcpStream, UdpSocket, UnixStream};
use tokio::time::timeout;

use super::look;
use super::open::Opened;
use crate::config::Listen;
use crate::state::Shared;

/// How long the gateway tries a port of its own host.
const PATIENCE: Duration = Duration::from_secs(1);

/// Everything, in the order in which it is tried.
pub(super) async fn all(
    shared: &Shared,
    peer: Option<SocketAddr>,
    opened: &Opened,
) -> Vec<CanaryTarget> {
    let mut targets = vec![control(), other_sandbox()];
    targets.extend(outside());
    if let Some(peer) = peer {
        targets.push(tcp("server", SocketAddr::new(peer.ip(), 443), None));
    }
    if let Some(Listen::Tcp(address, _)) = shared.place.listen {
        let address = concrete(address, opened);
        targets.push(tcp("gateway", address, Some(answers(address).await)));
    }
    targets.extend(around(opened));
    for (number, (address, _)) in opened.tcp.iter().enumerate() {
        let id = match (address.ip().is_loopback(), address.is_ipv4()) {
            (true, true) => "host_loopback_v4".into(),
            (true, false) => "host_loopback_v6".into(),
            (false, _) => format!("host_address_{number}"),
        };
        // Bound a moment ago: the system itself takes the connection.
        targets.push(tcp(&id, *address, Some(answers(*address).await)));
    }
    let outward = opened.tcp.iter().map(|(address, _)| address.ip());
    let outward: Vec<_> = outward.filter(|ip| !ip.is_loopback()).collect();
    let ssh = outward
        .first()
        .copied()
        .unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let ssh = SocketAddr::new(ssh, 22);
    targets.push(tcp("host_gateway_ssh", ssh, Some(answers(ssh).await)));
    for (number, (address, socket)) in opened.udp.iter().enumerate() {
        let id = if number == 0 {
            "host_resolver".into()
        } else {
            format!("host_resolver_{number}")
        };
        targets.push(blocked(
            &id,
            Reach::Dns {
                name: "canary.glovebox.invalid".into(),
                resolver: Some(Resolver {
                    address: address.ip().to_string(),
                    port: address.port(),
                }),
            },
            Some(hears(socket, *address).await),
        ));
    }
    let name = opened.abstract_name.clone();
    let is_there = UnixStream::connect(format!("\0{name}")).await.is_ok();
    let reach = Reach::AbstractSocket { name };
    targets.push(blocked("host_abstract_socket", reach, Some(is_there)));
    targets
}

/// What shows the network namespace itself, whatever becomes of connections: a sandbox that cannot
/// make a socket looks the same with and without one of its own. The gateway looks around in the
/// same way, in its own.
fn around(opened: &Opened) -> Vec<CanaryTarget> {
    let mut targets = vec![
        blocked("network_interfaces", Reach::Interfaces, look::interfaces()),
        blocked("network_routes", Reach::Routes, look::routes()),
    ];
    if let Some((address, _)) = opened.tcp.first() {
        let port = address.port();
        let is_listed = look::lists(port);
        targets.push(blocked(
            "network_sockets",
            Reach::ListedSocket { port },
            is_listed,
        ));
    }
    if let Some(number) = look::namespace() {
        let reach = Reach::NetworkNamespace { number };
        targets.push(blocked("network_namespace", reach, None));
    }
    targets
}

fn blocked(id: &str, reach: Reach, answers_gateway: Option<bool>) -> CanaryTarget {
    CanaryTarget {
        id: id.into(),
        reach,
        expected: Expected::Blocked,
        answers_gateway,
    }
}

/// Shows that attempts are real ones: a sandbox can reach itself.
fn control() -> CanaryTarget {
    CanaryTarget {
        id: "positive_control".into(),
        reach: Reach::OwnSocket,
        expected: Expected::Open,
        answers_gateway: None,
    }
}

/// A socket that whoever runs the canary opens in another sandbox.
fn other_sandbox() -> CanaryTarget {
    CanaryTarget {
        id: "other_sandbox".into(),
        reach: Reach::AbstractSocket {
            name: format!("glovebox-other-{}", ExecutionId::new()),
        },
        expected: Expected::Blocked,
        answers_gateway: None,
    }
}

/// What is beyond the host. The gateway itself sends nothing there.
fn outside() -> Vec<CanaryTarget> {
    let addresses: [(&str, IpAddr, u16); 6] = [
        ("internet_v4", IpAddr::from([1, 1, 1, 1]), 443),
        ("internet_dns_v4", IpAddr::from([8, 8, 8, 8]), 53),
        (
            "internet_v6",
            IpAddr::from([0x2606, 0x4700, 0x4700, 0, 0, 0, 0, 0x1111]),
            443,
        ),
        ("metadata_v4", IpAddr::from([169, 254, 169, 254]), 80),
        ("metadata_tasks_v4", IpAddr::from([169, 254, 170, 2]), 80),
        (
            "metadata_v6",
            IpAddr::from([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]),
            80,
        ),
    ];
    let mut targets: Vec<_> = addresses
        .into_iter()
        .map(|(id, ip, port)| tcp(id, SocketAddr::new(ip, port), None))
        .collect();
    for (id, name) in [
        ("dns_outside", "example.com"),
        ("dns_metadata", "metadata.google.internal"),
    ] {
        let reach = Reach::Dns {
            name: name.into(),
            resolver: None,
        };
        targets.push(blocked(id, reach, None));
    }
    targets
}

fn tcp(id: &str, address: SocketAddr, answers_gateway: Option<bool>) -> CanaryTarget {
    let reach = Reach::Tcp {
        address: address.ip().to_string(),
        port: address.port(),
    };
    blocked(id, reach, answers_gateway)
}

/// An address that can be tried, where the gateway listens at all of them.
fn concrete(address: SocketAddr, opened: &Opened) -> SocketAddr {
    if !address.ip().is_unspecified() {
        return address;
    }
    let mut outward = opened.tcp.iter().map(|(one, _)| one.ip());
    let ip = outward.rfind(|ip| !ip.is_loopback());
    SocketAddr::new(ip.unwrap_or(IpAddr::from([127, 0, 0, 1])), address.port())
}

/// Whether a port of this host takes a connection.
async fn answers(address: SocketAddr) -> bool {
    matches!(
        timeout(PATIENCE, TcpStream::connect(address)).await,
        Ok(Ok(_))
    )
}

/// Whether what is sent to this address comes out at the socket.
async fn hears(socket: &UdpSocket, address: SocketAddr) -> bool {
    let sent = async {
        let sender = UdpSocket::bind((address.ip(), 0)).await?;
        sender.send_to(b"heard", address).await?;
        let mut heard = [0; 8];
        let (length, _) = socket.recv_from(&mut heard).await?;
        Ok::<_, std::io::Error>(&heard[..length] == b"heard")
    };
    matches!(timeout(PATIENCE, sent).await, Ok(Ok(true)))
}
