//! Ways to an agent.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

/// A duplex byte stream to an agent.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin + ?Sized> ByteStream for T {}

/// What [`Connector::connect`] returns.
pub type Connecting<'a> =
    Pin<Box<dyn Future<Output = std::io::Result<Box<dyn ByteStream>>> + Send + 'a>>;

/// Opens byte streams to one agent.
pub trait Connector: Send + Sync {
    /// Opens one more stream.
    fn connect(&self) -> Connecting<'_>;
}

/// Reaches an agent at a Unix socket.
#[derive(Debug, Clone)]
pub struct UnixConnector(pub PathBuf);

impl Connector for UnixConnector {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async {
            let stream = UnixStream::connect(&self.0).await?;
            Ok(Box::new(stream) as Box<dyn ByteStream>)
        })
    }
}

impl<F, R> Connector for F
where
    F: Fn() -> R + Send + Sync,
    R: Future<Output = std::io::Result<Box<dyn ByteStream>>> + Send + 'static,
{
    fn connect(&self) -> Connecting<'_> {
        Box::pin(self())
    }
}
