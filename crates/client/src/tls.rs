//! TLS to a gateway: version 1.3 only, and nobody is believed but whom the caller named.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::pool::lock;

/// SHA-256 of a certificate as it is sent (DER): what a gateway prints at its first start, and
/// what is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

/// A text was no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a fingerprint: one is 64 hexadecimal digits, with or without colons between pairs")]
pub struct InvalidFingerprint;

impl Fingerprint {
    /// The fingerprint of a certificate in DER form.
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        let digest = ::ring::digest::digest(&::ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest.as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, InvalidFingerprint> {
        // The two forms that are in use: of ours, and of `openssl x509 -fingerprint`.
        let digits = if text.len() == 95 && text.bytes().skip(2).step_by(3).all(|b| b == b':') {
            text.replace(':', "")
        } else {
            text.to_owned()
        };
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(InvalidFingerprint);
        }
        let mut bytes = [0; 32];
        for (byte, place) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&digits[place..place + 2], 16)
                .map_err(|_| InvalidFingerprint)?;
        }
        Ok(Self(bytes))
    }
}

/// A bundle of certificates could not be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidBundle {
    /// Something in it is no certificate.
    #[error("reading certificate {number} of the bundle")]
    Pem {
        /// Which one, from 1.
        number: usize,
        /// Why.
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    /// A certificate in it is none that others can be trusted by.
    #[error("using certificate {number} of the bundle")]
    Certificate {
        /// Which one, from 1.
        number: usize,
        /// Why.
        #[source]
        cause: Error,
    },
    /// There is none in it.
    #[error("the bundle holds no certificate")]
    Empty,
    /// It cannot be checked by.
    #[error("using the bundle")]
    Unusable(#[source] rustls::client::VerifierBuilderError),
}

/// Which gateway is believed to be the one that is meant.
#[derive(Debug, Clone)]
pub struct Trust(Arc<dyn ServerCertVerifier>);

impl Trust {
    /// The one with exactly this certificate. Its names and dates do not matter.
    #[must_use]
    pub fn pinned(pin: Fingerprint) -> Self {
        Self::by_fingerprint(Believed::Pinned(pin))
    }

    /// One that is certified, for the name by which it is addressed, by one of these (PEM).
    ///
    /// # Errors
    /// When the bundle holds something else, or nothing.
    pub fn bundle(pem: &[u8]) -> Result<Self, InvalidBundle> {
        let mut roots = RootCertStore::empty();
        for (number, certificate) in (1..).zip(CertificateDer::pem_slice_iter(pem)) {
            let certificate = certificate.map_err(|cause| InvalidBundle::Pem { number, cause })?;
            roots
                .add(certificate)
                .map_err(|cause| InvalidBundle::Certificate { number, cause })?;
        }
        if roots.is_empty() {
            return Err(InvalidBundle::Empty);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider)
            .build()
            .map_err(InvalidBundle::Unusable)?;
        Ok(Self(verifier))
    }
}

/// Goes by the certificate's fingerprint alone.
#[derive(Debug)]
struct ByFingerprint {
    believed: Believed,
    provider: CryptoProvider,
}

/// Whose certificate is believed.
#[derive(Debug)]
enum Believed {
    /// The one that was pinned.
    Pinned(Fingerprint),
    /// Anybody's, which is remembered: for showing it to a person, before anything is sent.
    Anybody(Arc<Mutex<Option<Fingerprint>>>),
}

impl Trust {
    fn by_fingerprint(believed: Believed) -> Self {
        Self(Arc::new(ByFingerprint {
            believed,
            provider: ring::default_provider(),
        }))
    }
}

/// The certificate is another one than the pinned one.
#[derive(Debug, thiserror::Error)]
#[error("its certificate has the fingerprint {found}, and the pinned one is {pinned}")]
struct NotPinned {
    found: Fingerprint,
    pinned: Fingerprint,
}

impl ServerCertVerifier for ByFingerprint {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(end_entity);
        match &self.believed {
            Believed::Pinned(pinned) if *pinned != found => {
                let pinned = *pinned;
                let other = OtherError(Arc::new(NotPinned { found, pinned }));
                Err(Error::InvalidCertificate(CertificateError::Other(other)))
            }
            Believed::Pinned(_) => Ok(ServerCertVerified::assertion()),
            Believed::Anybody(seen) => {
                *lock(seen) = Some(found);
                Ok(ServerCertVerified::assertion())
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// The fingerprint of the certificate that a gateway shows: for a person to compare with what the
/// gateway printed. Nothing is sent beyond the handshake, which shows that the gateway holds the
/// certificate's key.
///
/// # Errors
/// When the gateway cannot be reached, or does not speak TLS 1.3.
pub async fn present_certificate(host: &str, port: u16) -> std::io::Result<Fingerprint> {
    let seen = Arc::default();
    let trust = Trust::by_fingerprint(Believed::Anybody(Arc::clone(&seen)));
    let stream = TcpStream::connect((host, port)).await?;
    handshake(stream, host, &trust).await?;
    let seen = *lock(&seen);
    seen.ok_or_else(|| std::io::Error::other("it has shown no certificate"))
}

/// Makes a connection confidential, and sure of whom it leads to.
pub(crate) async fn handshake(
    stream: TcpStream,
    host: &str,
    trust: &Trust,
) -> std::io::Result<TlsStream<TcpStream>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(std::io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&trust.0))
        .with_no_client_auth();
    let name = ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_in_both_forms() {
        let plain = Fingerprint::of(b"certificate").to_string();
        let pairs: Vec<_> = (0..64).step_by(2).map(|at| &plain[at..at + 2]).collect();
        let with_colons = pairs.join(":").to_uppercase();
        let read = |text: &str| text.parse::<Fingerprint>();
        assert_eq!(read(&plain), Ok(Fingerprint::of(b"certificate")));
        assert_eq!(read(&with_colons), read(&plain));
        for bad in [
            "",
            &plain[1..],
            &plain.replace('a', "g"),
            "ä".repeat(32).as_str(),
        ] {
            assert!(read(bad).is_err() || *bad == *plain, "{bad}");
        }
    }

    #[test]
    fn a_bundle_without_a_certificate_is_refused() {
        assert!(matches!(
            Trust::bundle(b"nothing"),
            Err(InvalidBundle::Empty)
        ));
    }
}
