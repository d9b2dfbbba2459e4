//! TLS of the server's own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use glovebox_server::program::{ProgramError, Server};
use glovebox_server::{TlsError, TlsFiles};
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::stage::config;

/// Makes a certificate for `localhost` with its key, and writes both.
fn write(files: &TlsFiles) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    fs_err::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    fs_err::write(&files.certificate, made.cert.pem()).unwrap();
    made.cert.der().clone()
}

fn files(folder: &Path) -> TlsFiles {
    TlsFiles {
        certificate: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    }
}

async fn open(folder: &Path, files: &TlsFiles) -> Result<Server, ProgramError> {
    let mut config = config(folder);
    config.tls = Some(files.clone());
    let store = glovebox_store::Store::open(&config.database).await.unwrap();
    store.migrate().await.unwrap();
    store.close().await;
    Server::open(config).await
}

/// Asks whether the server lives, and trusts this certificate alone.
async fn ask(address: SocketAddr, trusted: &CertificateDer<'static>) -> std::io::Result<String> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TcpStream::connect(address).await?;
    let mut stream = TlsConnector::from(Arc::new(client))
        .connect(name, stream)
        .await?;
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .await?;
    let mut answer = Vec::new();
    // Whoever closes without a word of goodbye has said everything all the same.
    let _ = stream.read_to_end(&mut answer).await;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_who_say_nothing_keep_nobody_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let certificate = write(&files);
    let server = open(folder.path(), &files).await.unwrap();
    let address = server.app().config().listen;
    assert_eq!(
        server.app().config().address(),
        format!("https://{address}")
    );
    let running = tokio::spawn(server.run(std::future::pending()));
    let mut silent = Vec::new();
    for _ in 0..100 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    let answer = ask(address, &certificate).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("strict-transport-security"), "{answer}");
    drop(silent);
    running.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_without_a_restart_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let before = write(&files);
    let server = open(folder.path(), &files).await.unwrap();
    let address = server.app().config().listen;
    let running = tokio::spawn(server.run(std::future::pending()));
    ask(address, &before).await.unwrap();
    fs_err::write(&files.certificate, "no certificate").unwrap();
    ask(address, &before).await.unwrap();
    let after = write(&files);
    ask(address, &after).await.unwrap();
    assert!(ask(address, &before).await.is_err());
    running.abort();
}

#[tokio::test]
async fn what_is_no_certificate_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let refused = |opened: Result<Server, ProgramError>| match opened {
        Err(ProgramError::Tls(error)) => error,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was taken"),
    };
    let missing = refused(open(folder.path(), &files).await);
    assert!(matches!(missing, TlsError::Read { .. }), "{missing:?}");
    write(&files);
    let key = fs_err::read(&files.key).unwrap();
    write(&files);
    fs_err::write(&files.key, key).unwrap();
    let strangers = refused(open(folder.path(), &files).await);
    assert!(matches!(strangers, TlsError::Use(_)), "{strangers:?}");
    fs_err::write(&files.certificate, "").unwrap();
    let empty = refused(open(folder.path(), &files).await);
    assert!(matches!(empty, TlsError::Empty(_)), "{empty:?}");
}
