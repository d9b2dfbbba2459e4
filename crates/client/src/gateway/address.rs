//! Where a gateway is, and how it is known for the right one.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use crate::connect::{ByteStream, Connecting, Connector};
use crate::tls::{Trust, handshake};

/// How long connecting may take, the handshake included.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Where a gateway listens when its address names no port.
const DEFAULT_PORT: u16 = 9443;

/// Where a gateway is.
#[derive(Debug, Clone)]
pub enum GatewayAddress {
    /// Behind TLS.
    Https {
        /// Name or address of its host.
        host: String,
        /// Its port.
        port: u16,
        /// How it is known for the right one.
        trust: Trust,
    },
    /// Without TLS, on this machine: what is sent can be read there by whoever may read the
    /// network of the machine.
    SameHost {
        /// Name or address of this machine.
        host: String,
        /// Its port.
        port: u16,
    },
    /// At a Unix socket of this machine.
    Unix(PathBuf),
}

/// A text is no address of a gateway.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAddress {
    /// It is no such address at all.
    #[error("`{0}` is no address of a gateway: one is https://HOST[:PORT] or unix:/PATH")]
    Form(String),
    /// Nothing says how it is known for the right one.
    #[error("nothing says how the gateway at {0} is known for the right one")]
    Trust(String),
    /// Without TLS it has to be this machine.
    #[error("`{0}` has no TLS and is not said to be on this machine")]
    Plain(String),
}

impl GatewayAddress {
    /// Reads `https://HOST[:PORT]` or `unix:/PATH`, and `http://HOST:PORT` where the gateway is
    /// said to be on this machine.
    ///
    /// # Errors
    /// When it is none of them, or lacks what it needs to be trusted.
    pub fn parse(
        text: &str,
        trust: Option<Trust>,
        is_same_host: bool,
    ) -> Result<Self, InvalidAddress> {
        let form = || InvalidAddress::Form(text.into());
        if let Some(path) = text.strip_prefix("unix:") {
            let path = PathBuf::from(path);
            return path
                .is_absolute()
                .then_some(Self::Unix(path))
                .ok_or_else(form);
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(form)?;
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        let (host, port) = host_and_port(authority).ok_or_else(form)?;
        match (scheme, trust) {
            ("https", Some(trust)) => Ok(Self::Https { host, port, trust }),
            ("https", None) => Err(InvalidAddress::Trust(text.into())),
            ("http", _) if is_same_host => Ok(Self::SameHost { host, port }),
            ("http", _) => Err(InvalidAddress::Plain(text.into())),
            _ => Err(form()),
        }
    }
}

/// Reads `HOST`, `HOST:PORT`, `[ADDRESS]` or `[ADDRESS]:PORT`.
fn host_and_port(authority: &str) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (
                host,
                rest.strip_prefix(':')
                    .or_else(|| rest.is_empty().then_some(""))?,
            )
        }
        None => authority.split_once(':').unwrap_or((authority, "")),
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:".contains(&byte);
    if host.is_empty() || !host.bytes().all(is_host) {
        return None;
    }
    let port = match port {
        "" => DEFAULT_PORT,
        port => port.parse().ok().filter(|port| *port > 0)?,
    };
    Some((host.into(), port))
}

impl fmt::Display for GatewayAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, host, port) = match self {
            Self::Https { host, port, .. } => ("https", host, port),
            Self::SameHost { host, port } => ("http", host, port),
            Self::Unix(path) => return write!(f, "unix:{}", path.display()),
        };
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")
        } else {
            write!(f, "{scheme}://{host}:{port}")
        }
    }
}

impl Connector for GatewayAddress {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let opened = timeout(CONNECT_LIMIT, open(self)).await;
            let opened = opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            opened.map_err(|error| {
                io::Error::new(error.kind(), format!("the gateway at {self}: {error}"))
            })
        })
    }
}

async fn open(address: &GatewayAddress) -> io::Result<Box<dyn ByteStream>> {
    Ok(match address {
        GatewayAddress::Https { host, port, trust } => {
            Box::new(handshake(tcp(host, *port).await?, host, trust).await?)
        }
        GatewayAddress::SameHost { host, port } => Box::new(tcp(host, *port).await?),
        GatewayAddress::Unix(path) => Box::new(UnixStream::connect(path).await?),
    })
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    // A small request is one write; without this it waits for the answer to the one before.
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tls::Fingerprint;

    fn read(text: &str) -> Result<String, InvalidAddress> {
        let trust = Trust::pinned(Fingerprint::of(b""));
        GatewayAddress::parse(text, Some(trust), false).map(|address| address.to_string())
    }

    #[test]
    fn an_address_is_read_as_people_write_it() {
        for (text, read_as) in [
            ("https://gw", "https://gw:9443"),
            ("https://gw.example.com:1/", "https://gw.example.com:1"),
            ("https://127.0.0.1:9443", "https://127.0.0.1:9443"),
            ("https://[::1]", "https://[::1]:9443"),
            ("https://[::1]:8", "https://[::1]:8"),
            ("unix:/run/gb.sock", "unix:/run/gb.sock"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(read_as));
        }
        for bad in [
            "gw",
            "https://",
            "https://gw:0",
            "https://gw:x",
            "https://gw/path",
            "https://a@b",
            "https://[::1",
            "https://[gw]",
            "ftp://gw",
            "unix:run/gb.sock",
            "http://127.0.0.1:9443",
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn tls_needs_somebody_to_trust_and_its_absence_needs_to_be_said() {
        let parse = |text, same| GatewayAddress::parse(text, None, same);
        assert!(matches!(
            parse("https://gw", true),
            Err(InvalidAddress::Trust(_))
        ));
        assert!(matches!(
            parse("http://gw", false),
            Err(InvalidAddress::Plain(_))
        ));
        assert!(parse("http://127.0.0.1:9443", true).is_ok());
    }
}
