//! TLS of the server's own: a certificate and its key from two files, read again when they change.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::crypto::ring::{default_provider, sign::any_supported_type};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::failure::chain;

/// How long a caller may take to agree on a key.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How many callers may be agreeing on a key at once; the next ones wait.
const MAX_HANDSHAKES: usize = 256;

/// Where a certificate and its key lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, with those that it is signed by, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is not what it has to be.
    #[error("reading {what} from {path}", path = path.display())]
    Read {
        /// What it was to hold.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: rustls::pki_types::pem::Error,
    },
    /// The file holds no certificate.
    #[error("there is no certificate in {path}", path = .0.display())]
    Empty(PathBuf),
    /// The two do not belong together, or their kind is not known.
    #[error("using the certificate with its key")]
    Use(#[source] rustls::Error),
}

/// When and how large the two files were, to see that they have changed.
type Seen = [Option<(SystemTime, u64)>; 2];

/// What is answered with at the moment.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // An Arc has no state in which it could be left half changed.
        let current = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Some(Arc::clone(&current))
    }
}

impl TlsFiles {
    fn load(&self) -> Result<Arc<CertifiedKey>, TlsError> {
        let failed = |what, path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Read { what, path, source }
        };
        let chain: Vec<_> = CertificateDer::pem_file_iter(&self.certificate)
            .and_then(Iterator::collect)
            .map_err(failed("a certificate", &self.certificate))?;
        if chain.is_empty() {
            return Err(TlsError::Empty(self.certificate.clone()));
        }
        let key =
            PrivateKeyDer::from_pem_file(&self.key).map_err(failed("a private key", &self.key))?;
        let key = any_supported_type(&key).map_err(TlsError::Use)?;
        let pair = CertifiedKey::new(chain, key);
        pair.keys_match().map_err(TlsError::Use)?;
        Ok(Arc::new(pair))
    }

    fn seen(&self) -> Seen {
        let look = |path: &Path| {
            let found = fs_err::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len()))
        };
        [look(&self.certificate), look(&self.key)]
    }
}

/// Listens for callers and agrees on a key with each before it hands them on. One that is slow
/// keeps nobody else waiting.
pub(crate) struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Option<(TlsStream<TcpStream>, SocketAddr)>>,
    files: TlsFiles,
    current: Arc<Current>,
    seen: Seen,
}

impl TlsListener {
    /// Reads the files.
    pub(crate) fn new(listener: TcpListener, files: TlsFiles) -> Result<Self, TlsError> {
        // Looked at first: a change while they are read is seen later.
        let seen = files.seen();
        let current = Arc::new(Current(RwLock::new(files.load()?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Use)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            handshakes: JoinSet::new(),
            files,
            current,
            seen,
        })
    }

    /// Takes what the files hold now, where they have changed. What cannot be used is told once,
    /// and what was there before goes on: a renewal that is half done locks nobody out.
    fn look_again(&mut self) {
        let seen = self.files.seen();
        if seen == self.seen {
            return;
        }
        self.seen = seen;
        match self.files.load() {
            Ok(pair) => {
                *self
                    .current
                    .0
                    .write()
                    .unwrap_or_else(PoisonError::into_inner) = pair;
                tracing::info!("the certificate has changed and is used from now on");
            }
            Err(error) => {
                let error = chain(&error);
                tracing::error!(error, "the certificate has changed and cannot be used");
            }
        }
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr) {
        self.look_again();
        let agreeing = self.acceptor.accept(stream);
        self.handshakes.spawn(async move {
            match tokio::time::timeout(HANDSHAKE, agreeing).await {
                Ok(Ok(stream)) => Some((stream, peer)),
                Ok(Err(error)) => {
                    tracing::debug!(%peer, error = chain(&error), "a caller did not agree on a key");
                    None
                }
                Err(_) => None,
            }
        });
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                Some(done) = self.handshakes.join_next() => {
                    if let Ok(Some(ready)) = done {
                        return ready;
                    }
                }
                (stream, peer) = Listener::accept(&mut self.listener),
                    if self.handshakes.len() < MAX_HANDSHAKES =>
                {
                    crate::serving::prepare(&stream);
                    self.begin(stream, peer);
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}
