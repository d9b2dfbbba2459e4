//! A stream of a session, which hides from its connection that the session was cut.
//!
//! A client that closes a stream means it, and what runs for it is ended. A session that is over
//! is nobody's wish: what was asked for goes on, and what it says then goes nowhere but into its
//! log.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

/// See the module.
pub(super) struct Attached<S> {
    stream: S,
    over: watch::Receiver<bool>,
}

impl<S> Attached<S> {
    pub(super) const fn new(stream: S, over: watch::Receiver<bool>) -> Self {
        Self { stream, over }
    }

    fn is_cut(&self) -> bool {
        *self.over.borrow()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Attached<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(context, buffer);
        let is_end = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_end && this.is_cut() {
            // Nothing will come, and the connection is told otherwise that it is to end.
            return Poll::Pending;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Attached<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_cut() {
            return Poll::Ready(Ok(bytes.len()));
        }
        match Pin::new(&mut this.stream).poll_write(context, bytes) {
            Poll::Ready(Err(_)) if this.is_cut() => Poll::Ready(Ok(bytes.len())),
            other => other,
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_flush(context) {
            Poll::Ready(Err(_)) | Poll::Pending if this.is_cut() => Poll::Ready(Ok(())),
            other => other,
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        match Pin::new(&mut this.stream).poll_shutdown(context) {
            Poll::Ready(Err(_)) | Poll::Pending if this.is_cut() => Poll::Ready(Ok(())),
            other => other,
        }
    }
}
