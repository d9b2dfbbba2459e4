//! Connections to endpoints: to exactly the addresses that were looked at, and with TLS to nobody
//! but the host that stands in the address.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use glovebox_client::ByteStream;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use super::address::BaseUrl;
use super::error::ModelError;

/// Who is believed to be who they say. Clones share it; it is read when it is first needed.
#[derive(Debug, Clone, Default)]
pub(super) struct Believed(Arc<OnceLock<Arc<ClientConfig>>>);

impl Believed {
    /// Nobody but who is certified by these.
    #[cfg(test)]
    pub(super) fn by(roots: RootCertStore) -> Self {
        let believed = Self::default();
        let _ = believed.0.set(config(roots).unwrap());
        believed
    }

    fn config(&self) -> Result<Arc<ClientConfig>, rustls::Error> {
        if let Some(config) = self.0.get() {
            return Ok(Arc::clone(config));
        }
        let config = config(roots())?;
        Ok(Arc::clone(self.0.get_or_init(|| config)))
    }
}

/// The authorities that browsers believe, and those that whoever runs this machine has added:
/// models on the own network are often certified by one's own.
fn roots() -> RootCertStore {
    let mut roots = RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn config(roots: RootCertStore) -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// A connection to an endpoint.
pub(super) async fn connect(
    base_url: &BaseUrl,
    patience: Duration,
    believed: &Believed,
) -> Result<Box<dyn ByteStream>, ModelError> {
    let late = || ModelError::ConnectTimeout {
        place: base_url.place(),
        seconds: patience.as_secs(),
    };
    let deadline = Instant::now() + patience;
    let addresses = timeout_at(deadline, base_url.resolve())
        .await
        .map_err(|_| late())??;
    let stream = first_of(&addresses, base_url, deadline).await?;
    let stream = stream.ok_or_else(late)?;
    if !base_url.is_encrypted() {
        return Ok(Box::new(stream));
    }
    let stream = timeout_at(deadline, secured(stream, base_url, believed)).await;
    stream.map_err(|_| late())?
}

/// Connects to the first address that takes it. Each but the last gets an equal share of the time
/// that is left, so that one that swallows everything leaves time for the others. Gives nothing
/// where time ran out.
async fn first_of(
    addresses: &[SocketAddr],
    base_url: &BaseUrl,
    deadline: Instant,
) -> Result<Option<TcpStream>, ModelError> {
    let mut failed = None;
    for (address, left) in addresses.iter().zip((1..=addresses.len()).rev()) {
        let now = Instant::now();
        let share = deadline.saturating_duration_since(now) / u32::try_from(left).unwrap_or(1);
        match timeout_at(now + share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Questions and answers are small pieces that somebody waits for.
                let _ = stream.set_nodelay(true);
                return Ok(Some(stream));
            }
            Ok(Err(source)) => failed = Some(source),
            Err(_) => {}
        }
    }
    match failed {
        None => Ok(None),
        Some(source) => Err(ModelError::Connect {
            place: base_url.place(),
            source,
        }),
    }
}

async fn secured(
    stream: TcpStream,
    base_url: &BaseUrl,
    believed: &Believed,
) -> Result<Box<dyn ByteStream>, ModelError> {
    let refused = |source| ModelError::Tls {
        place: base_url.place(),
        source,
    };
    let config = believed.config();
    let config = config.map_err(|error| refused(std::io::Error::other(error)))?;
    let host = base_url.host().trim_matches(['[', ']']).to_owned();
    let name = ServerName::try_from(host);
    let name = name.map_err(|error| refused(std::io::Error::other(error)))?;
    let stream = TlsConnector::from(config).connect(name, stream).await;
    Ok(Box::new(stream.map_err(refused)?))
}
