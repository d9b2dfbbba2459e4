//! Watches the raw bytes of a connection for requests that two readers could understand in two
//! ways; see [`glovebox_protocol::strict`].
//!
//! It changes no byte. It raises a flag, and the request is then answered with 400 and the
//! connection closed; see [`crate::http`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use glovebox_protocol::strict::Scanner;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose incoming requests are watched.
pub(crate) struct Watched<S> {
    stream: S,
    scanner: Scanner,
    ambiguous: Arc<AtomicBool>,
}

impl<S> Watched<S> {
    /// The stream, and the flag that says that a request on it was ambiguous.
    pub(crate) fn new(stream: S) -> (Self, Arc<AtomicBool>) {
        let ambiguous = Arc::new(AtomicBool::new(false));
        let watched = Self {
            stream,
            scanner: Scanner::default(),
            ambiguous: Arc::clone(&ambiguous),
        };
        (watched, ambiguous)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.scanner.scan(&buffer.filled()[before..]);
        if this.scanner.is_ambiguous() {
            this.ambiguous.store(true, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
