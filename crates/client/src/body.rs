//! Bodies of requests.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;

/// What a request carries.
pub(crate) enum RequestBody {
    /// All of it.
    Whole(Option<Bytes>),
    /// As it is read; `left` bytes are to come.
    Stream {
        chunks: mpsc::Receiver<std::io::Result<Bytes>>,
        left: u64,
    },
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<std::io::Result<Frame<Bytes>>>> {
        match self.get_mut() {
            Self::Whole(body) => Poll::Ready(body.take().map(|body| Ok(Frame::data(body)))),
            Self::Stream { chunks, left } => chunks.poll_recv(context).map(|chunk| match chunk {
                Some(Ok(chunk)) => {
                    *left = left.saturating_sub(chunk.len() as u64);
                    Some(Ok(Frame::data(chunk)))
                }
                Some(Err(error)) => Some(Err(error)),
                None if *left > 0 => Some(Err(std::io::ErrorKind::UnexpectedEof.into())),
                None => None,
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.as_ref().is_none_or(Bytes::is_empty),
            Self::Stream { left, .. } => *left == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Self::Whole(body) => body.as_ref().map_or(0, Bytes::len) as u64,
            Self::Stream { left, .. } => *left,
        })
    }
}
