//! Where a gateway listens, and where it refuses to.
//!
//! Sandboxes reach no network. A gateway on a bridge of containers, or on all interfaces, would be
//! one mistake away from them; so it takes a word to have it there.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use super::Variables;

/// The usual place.
const DEFAULT: &str = "127.0.0.1:9443";

/// Beginnings of names of interfaces that containers and virtual machines are on.
const BRIDGES: [&str; 9] = [
    "docker", "br-", "podman", "cni", "virbr", "lxcbr", "lxdbr", "flannel", "veth",
];

/// Longest path of a Unix socket, in bytes.
const MAX_SOCKET_PATH: usize = 107;

/// Where a gateway listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// At an address.
    Tcp(SocketAddr, Transport),
    /// At a Unix socket, plain.
    Unix(PathBuf),
}

/// What goes over TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TLS.
    Tls,
    /// Plain HTTP, for a server on the same host.
    Plain,
}

/// A network interface with one of its addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The address.
    pub address: IpAddr,
}

pub(super) fn read(variables: &mut Variables<'_>, interfaces: &[Interface]) -> Option<Listen> {
    let transport = transport(variables)?;
    let name = "GATEWAY_LISTEN";
    let text = variables.text(name).unwrap_or_else(|| DEFAULT.into());
    if let Some(path) = text.strip_prefix("unix:") {
        let is_path = path.starts_with('/') && path.len() <= MAX_SOCKET_PATH;
        if !is_path {
            let what = format!("is no absolute path of at most {MAX_SOCKET_PATH} bytes");
            variables
                .faults
                .add(name, what, "write it as unix:/run/glovebox-gateway/socket");
            return None;
        }
        return Some(Listen::Unix(path.into()));
    }
    let Ok(address) = text.parse::<SocketAddr>() else {
        let fix =
            "write it as ADDRESS:PORT, such as 127.0.0.1:9443 or [::1]:9443, or as unix:/PATH";
        variables.faults.add(name, "is no address", fix);
        return None;
    };
    let anyway = anyway(variables)?;
    match reachable(address.ip(), interfaces) {
        Some(what) if !anyway => {
            let fix = "name an address that only the server reaches, or accept it with GATEWAY_LISTEN_ANYWAY=reachable-from-sandboxes";
            variables.faults.add(name, what, fix);
            None
        }
        _ => Some(Listen::Tcp(address, transport)),
    }
}

fn transport(variables: &mut Variables<'_>) -> Option<Transport> {
    let name = "GATEWAY_INSECURE_HTTP";
    match variables.text(name).as_deref() {
        None => Some(Transport::Tls),
        Some("same-host") => Some(Transport::Plain),
        Some(_) => {
            let fix = "leave it out for TLS, or set it to `same-host` where server and gateway are on one host";
            variables.faults.add(name, "is not `same-host`", fix);
            None
        }
    }
}

fn anyway(variables: &mut Variables<'_>) -> Option<bool> {
    let name = "GATEWAY_LISTEN_ANYWAY";
    match variables.text(name).as_deref() {
        None => Some(false),
        Some("reachable-from-sandboxes") => Some(true),
        Some(_) => {
            let fix = "leave it out, or set it to `reachable-from-sandboxes`";
            variables
                .faults
                .add(name, "is not what can be accepted", fix);
            None
        }
    }
}

/// Why containers on this machine could reach an address.
fn reachable(address: IpAddr, interfaces: &[Interface]) -> Option<String> {
    let address = address.to_canonical();
    if address.is_unspecified() {
        return Some("is every address of this machine, those of container bridges too".into());
    }
    let mut interfaces = interfaces.iter();
    let bridge = interfaces.find(|one| {
        one.address.to_canonical() == address
            && BRIDGES.iter().any(|name| one.name.starts_with(name))
    })?;
    Some(format!(
        "is an address of {}, which containers are on",
        bridge.name
    ))
}

/// Whether containers on this machine could reach an address, as far as that can be told.
pub(crate) fn containers_reach(address: IpAddr) -> bool {
    reachable(address, &interfaces().unwrap_or_default()).is_some()
}

/// The network interfaces of this machine, with each of their addresses.
///
/// # Errors
/// When the operating system does not tell.
pub fn interfaces() -> std::io::Result<Vec<Interface>> {
    let addresses = nix::ifaddrs::getifaddrs()?;
    Ok(addresses
        .filter_map(|one| {
            let address = one.address?;
            let four = address.as_sockaddr_in().map(|four| IpAddr::V4(four.ip()));
            let six = || address.as_sockaddr_in6().map(|six| IpAddr::V6(six.ip()));
            Some(Interface {
                name: one.interface_name,
                address: four.or_else(six)?,
            })
        })
        .collect())
}
