//! The gateway's own key and certificate, by whose fingerprint servers know it.

use std::sync::Arc;

use glovebox_client::Fingerprint;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::version::TLS13;
use tokio_rustls::TlsAcceptor;

/// The name in the certificate. Servers go by the fingerprint, not by the name.
const NAME: &str = "glovebox-gateway";

/// A key with its certificate, ready to answer with.
#[derive(Clone)]
pub struct TlsIdentity {
    config: Arc<rustls::ServerConfig>,
    fingerprint: Fingerprint,
}

/// A key or certificate cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// None could be made.
    #[error("making a key and a certificate")]
    Make(#[source] rcgen::Error),
    /// Those that there are do not fit together, or are none.
    #[error("using the key and the certificate")]
    Use(#[source] rustls::Error),
}

/// A new key with its certificate, both in their binary form.
pub struct NewIdentity {
    /// PKCS #8.
    pub key: Vec<u8>,
    /// DER.
    pub certificate: Vec<u8>,
}

impl NewIdentity {
    /// Makes one. Its certificate does not expire: it is trusted by its fingerprint, until an
    /// administrator makes another.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn make() -> Result<Self, TlsError> {
        let key = rcgen::KeyPair::generate().map_err(TlsError::Make)?;
        let mut parameters =
            rcgen::CertificateParams::new(vec![NAME.to_owned()]).map_err(TlsError::Make)?;
        parameters.distinguished_name = rcgen::DistinguishedName::new();
        parameters
            .distinguished_name
            .push(rcgen::DnType::CommonName, NAME);
        let certificate = parameters.self_signed(&key).map_err(TlsError::Make)?;
        Ok(Self {
            key: key.serialize_der(),
            certificate: certificate.der().to_vec(),
        })
    }
}

impl TlsIdentity {
    /// The identity that these make.
    ///
    /// # Errors
    /// When they do not fit together.
    pub fn new(key: Vec<u8>, certificate: Vec<u8>) -> Result<Self, TlsError> {
        let fingerprint = Fingerprint::of(&certificate);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])
            .map_err(TlsError::Use)?
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(certificate)], key)
            .map_err(TlsError::Use)?;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// By what servers know it.
    #[must_use]
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}
