//! Answering connections: each with a limit to how long it may say or take nothing, and not more of
//! them than there is room for, in all and from one address.

mod address;
mod patient;

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::serve::Listener;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tower::ServiceExt as _;

use crate::failure::chain;
use address::Addresses;
use patient::Patient;

/// How long a caller may take for the head of a request, the time before its first byte included.
const HEAD: Duration = Duration::from_secs(30);

/// How long a caller may send nothing in the middle of a body.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a caller may take nothing of an answer.
const UNTAKEN: Duration = Duration::from_secs(60);

/// How long a caller may leave unanswered that something has arrived: one that has vanished without a
/// word would hold its place, and those of its streams, for as long as Linux tries again.
const VANISHED: Duration = Duration::from_secs(60);

/// How many callers may be connected at once at most; the next ones wait for one to go.
const CONNECTIONS: usize = 4096;

/// What part of them may come from one address, and how many in any case.
const SHARE_OF_ADDRESS: usize = 4;
const LEAST_OF_ADDRESS: usize = 64;

/// Makes a connection ready. What cannot be set makes it slower, or longer to be noticed as dead, and no
/// worse.
pub(crate) fn prepare(stream: &TcpStream) {
    // Events are small and each of them is news.
    let _ = stream.set_nodelay(true);
    let milliseconds = u32::try_from(VANISHED.as_millis()).unwrap_or(u32::MAX);
    let _ = set_tcp_user_timeout(stream, milliseconds);
}

/// How many callers there may be, and how slow they.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    head: Duration,
    silence: Duration,
    untaken: Duration,
    /// At once. The next ones wait for one to go.
    connections: usize,
    /// From one address. The next ones are turned away.
    per_address: usize,
    /// Addresses of which that does not hold: everybody comes from a program that stands in front.
    unlimited: Vec<IpAddr>,
}

impl Default for Limits {
    fn default() -> Self {
        let connections = places();
        let share = connections / SHARE_OF_ADDRESS;
        Self {
            head: HEAD,
            silence: SILENCE,
            untaken: UNTAKEN,
            connections,
            per_address: share.max(LEAST_OF_ADDRESS).min(connections),
            unlimited: Vec::new(),
        }
    }
}

impl Limits {
    /// The limits of a server behind these programs.
    pub(crate) fn behind(proxies: &[IpAddr]) -> Self {
        Self {
            unlimited: proxies.to_vec(),
            ..Self::default()
        }
    }
}

/// Takes as many descriptors as the system lets this user have, and says how many callers may be
/// connected at once: half of them, as the database, the gateway and files want some too.
fn places() -> usize {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // What it has it may always set again; where it may not, what it had stays.
    let _ = setrlimit(Resource::Nofile, limit);
    let held = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(held / 2).map_or(CONNECTIONS, |half| half.clamp(1, CONNECTIONS))
}

/// How long requests may go on after the server was told to stop.
const GRACE: Duration = Duration::from_secs(10);

/// Answers requests until `stop` is done, and those under way for a while longer.
pub(crate) async fn answer<L>(
    mut listener: L,
    routes: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) where
    L: Listener<Addr = SocketAddr>,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.head);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    let addresses = Addresses::new(limits.per_address, limits.unlimited);
    tokio::pin!(stop);
    loop {
        let next = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, (stream, peer)) = tokio::select! {
            next = next => next,
            () = &mut stop => break,
        };
        let Some(counted) = addresses.admit(peer.ip()) else {
            tracing::debug!(%peer, "a caller was turned away: there are too many from its address");
            continue;
        };
        let routes = routes.clone();
        let silence = limits.silence;
        let service = service_fn(move |request| one(routes.clone(), peer, silence, request));
        let stream = TokioIo::new(Patient::new(stream, limits.untaken));
        let connection = graceful.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%peer, error = chain(&error), "a connection ended");
            }
            // In this order: who comes into the place is counted without this one.
            drop(counted);
            drop(place);
        });
    }
    drop(listener);
    // Streams of events have no end of their own.
    let deadline = tokio::time::sleep_until(Instant::now() + GRACE);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = deadline => {}
    }
}

async fn one(
    routes: Router,
    peer: SocketAddr,
    silence: Duration,
    request: Request<Incoming>,
) -> Result<axum::response::Response, Infallible> {
    let mut request = request.map(|body| in_time(body, silence));
    request.extensions_mut().insert(ConnectInfo(peer));
    routes.oneshot(request).await
}

/// Why a body broke off.
#[derive(Debug, thiserror::Error)]
enum BrokenOff {
    #[error("nothing came for {} s", .0.as_secs())]
    Silence(Duration),
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

/// A body that breaks off when nothing comes for too long.
fn in_time(body: Incoming, silence: Duration) -> Body {
    let parts = futures_util::stream::unfold(Some(body), move |body| async move {
        let mut body = body?;
        let part: Result<Bytes, BrokenOff> = match timeout(silence, body.frame()).await {
            Ok(None) => return None,
            // What stands behind a body says nothing here.
            Ok(Some(Ok(frame))) => Ok(frame.into_data().unwrap_or_default()),
            Ok(Some(Err(error))) => Err(error.into()),
            Err(_) => Err(BrokenOff::Silence(silence)),
        };
        let rest = part.is_ok().then_some(body);
        Some((part, rest))
    });
    Body::from_stream(parts)
}

#[cfg(test)]
mod tests;
