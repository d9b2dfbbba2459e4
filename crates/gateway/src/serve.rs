//! Listening: TLS 1.3 over TCP, or plain over a Unix socket or, where that was said by name, over
//! TCP on the same host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;
use tokio::net::{TcpListener, TcpStream, UnixListener};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;

use crate::config::{Listen, Transport};
use crate::connections::{Connections, Standing};
use crate::http;
use crate::state::Shared;
use crate::tls::TlsIdentity;

/// How long a TLS handshake may take.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// How long a connection may be there before somebody shows a credential on it.
const STRANGER_LIMIT: Duration = Duration::from_secs(30);

/// How long no connection is taken after descriptors or memory ran out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// After how long a silent peer is asked whether it is still there, and how often.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// Where a gateway is reached.
pub enum Listener {
    /// TLS 1.3 over TCP.
    Tls(TcpListener, TlsIdentity),
    /// Plain over TCP, for a server on the same host.
    Plain(TcpListener),
    /// Plain over a Unix socket.
    Unix(UnixListener),
}

impl Listener {
    /// Where it is, with the port that the system chose if none was named.
    #[must_use]
    pub fn listen(&self) -> Option<Listen> {
        match self {
            Self::Tls(listener, _) => {
                Some(Listen::Tcp(listener.local_addr().ok()?, Transport::Tls))
            }
            Self::Plain(listener) => {
                Some(Listen::Tcp(listener.local_addr().ok()?, Transport::Plain))
            }
            Self::Unix(listener) => {
                let address = listener.local_addr().ok()?;
                Some(Listen::Unix(address.as_pathname()?.to_owned()))
            }
        }
    }

    /// Where it is, in words.
    #[must_use]
    pub fn place(&self) -> String {
        let address = match self {
            Self::Tls(listener, _) | Self::Plain(listener) => {
                listener.local_addr().map(|address| address.to_string())
            }
            Self::Unix(listener) => listener.local_addr().map(|address| {
                let path = address.as_pathname().map(|path| path.display().to_string());
                format!("unix:{}", path.unwrap_or_default())
            }),
        };
        address.unwrap_or_else(|error| format!("a place that is not known: {error}"))
    }
}

/// Serves every connection of a listener. Returns only when that fails.
pub(crate) async fn serve(
    shared: &Arc<Shared>,
    connections: &Connections,
    listener: Listener,
) -> std::io::Error {
    match listener {
        Listener::Tls(listener, identity) => {
            let acceptor = identity.acceptor();
            accept_tcp(connections, listener, |stream, standing| {
                serve_tls(Arc::clone(shared), acceptor.clone(), stream, standing)
            })
            .await
        }
        Listener::Plain(listener) => {
            accept_tcp(connections, listener, |stream, standing| {
                serve_known(Arc::clone(shared), stream, standing)
            })
            .await
        }
        Listener::Unix(listener) => loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let standing = Arc::new(Standing::new(None));
                    let serving = serve_known(Arc::clone(shared), stream, Arc::clone(&standing));
                    connections.admit(standing, tokio::spawn(serving).abort_handle());
                }
                Err(error) if is_passing(&error) => pause().await,
                Err(error) => return error,
            }
        },
    }
}

async fn accept_tcp<F>(
    connections: &Connections,
    listener: TcpListener,
    serve: impl Fn(TcpStream, Arc<Standing>) -> F,
) -> std::io::Error
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // One that cannot be set up is about to break anyway.
                let _ = set_up(&stream);
                let standing = Arc::new(Standing::new(Some(plain(peer))));
                let serving = serve(stream, Arc::clone(&standing));
                connections.admit(standing, tokio::spawn(serving).abort_handle());
            }
            Err(error) if is_passing(&error) => pause().await,
            Err(error) => return error,
        }
    }
}

fn set_up(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE / 4)?;
    Ok(sockopt::set_tcp_keepcnt(stream, 4)?)
}

/// An address of version 4 that came in through a socket of version 6, as one of version 4.
fn plain(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

async fn serve_tls(
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    stream: TcpStream,
    standing: Arc<Standing>,
) {
    // A handshake that fails is the other side's matter; it has been told by an alert.
    if let Ok(Ok(stream)) = timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await {
        serve_known(shared, stream, standing).await;
    }
}

/// Serves a connection as long as there is somebody on it who has a credential.
async fn serve_known<S>(shared: Arc<Shared>, stream: S, standing: Arc<Standing>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let stranger = async {
        if timeout(STRANGER_LIMIT, standing.until_authenticated())
            .await
            .is_ok()
        {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = http::serve(shared, stream, Arc::clone(&standing)) => {}
        () = stranger => {}
    }
}

async fn pause() {
    sleep_until(Instant::now() + ACCEPT_PAUSE).await;
}

/// Whether a connection could not be taken for want of something that may come back.
fn is_passing(error: &std::io::Error) -> bool {
    let fatal = [Errno::BADF, Errno::INVAL, Errno::NOTSOCK, Errno::OPNOTSUPP];
    Errno::from_io_error(error).is_some_and(|errno| !fatal.contains(&errno))
}
