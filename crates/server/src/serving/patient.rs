//! A connection that breaks off when its caller takes nothing of what it is sent for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A stream whose writes are in time or fail. Whoever takes a little all the time may take as long as
/// it likes.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    /// How long a caller may take nothing while something waits to be sent.
    patience: Duration,
    /// When patience ends, while something waits to be sent.
    late: Option<Pin<Box<Sleep>>>,
}

impl<S: Unpin> Patient<S> {
    pub(super) const fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            late: None,
        }
    }

    fn stream(&mut self) -> Pin<&mut S> {
        Pin::new(&mut self.stream)
    }

    /// What came of a write, unless it has waited for too long.
    fn in_time<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.late = None;
            return written;
        }
        let patience = self.patience;
        let late = self
            .late
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + patience)));
        late.as_mut().poll(context).map(|()| {
            let message = format!("the caller took nothing for {} s", patience.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, message))
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = self.stream().poll_write_vectored(context, parts);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = self.stream().poll_flush(context);
        self.in_time(context, written)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = self.stream().poll_shutdown(context);
        self.in_time(context, written)
    }
}
