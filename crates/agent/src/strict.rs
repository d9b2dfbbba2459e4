//! Watches the raw bytes of a connection for requests that two readers could understand in two
//! ways, which the HTTP library would let pass: a doubled length, a transfer coding, a line that
//! ends without carriage return, a fragment in the target.
//!
//! It changes no byte. It raises a flag, and the request is then answered with 400 and the
//! connection closed; see [`crate::http`].

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Longest head that is looked at; the HTTP library refuses longer ones itself.
const MAX_HEAD: usize = 64 * 1024;

/// A stream whose incoming requests are watched.
pub(crate) struct Watched<S> {
    stream: S,
    watcher: Watcher,
}

impl<S> Watched<S> {
    /// The stream, and the flag that says that a request on it was ambiguous.
    pub(crate) fn new(stream: S) -> (Self, Arc<AtomicBool>) {
        let ambiguous = Arc::new(AtomicBool::new(false));
        let watcher = Watcher {
            state: State::Head(Vec::new()),
            ambiguous: Arc::clone(&ambiguous),
        };
        (Self { stream, watcher }, ambiguous)
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
        this.watcher.watch(&buffer.filled()[before..]);
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

struct Watcher {
    state: State,
    ambiguous: Arc<AtomicBool>,
}

enum State {
    /// In a head; holds what came of it so far.
    Head(Vec<u8>),
    /// In a body of which so many bytes are to come.
    Body(u64),
    /// Nothing that follows can be trusted to begin where it seems to.
    Lost,
}

impl Watcher {
    fn watch(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Lost => return,
                State::Body(left) => {
                    let here = usize::try_from(*left).map_or(bytes.len(), |n| n.min(bytes.len()));
                    *left -= here as u64;
                    bytes = &bytes[here..];
                    if *left == 0 {
                        self.state = State::Head(Vec::new());
                    }
                }
                State::Head(head) => {
                    let (byte, rest) = (bytes[0], &bytes[1..]);
                    bytes = rest;
                    // Empty lines in front of a request are allowed and mean nothing.
                    if head.is_empty() && matches!(byte, b'\r' | b'\n') {
                        continue;
                    }
                    head.push(byte);
                    if byte == b'\n' {
                        if !head.ends_with(b"\r\n") {
                            self.lose();
                        } else if head.ends_with(b"\r\n\r\n") {
                            match body_length(head) {
                                Some(0) => self.state = State::Head(Vec::new()),
                                Some(length) => self.state = State::Body(length),
                                None => self.lose(),
                            }
                        }
                    } else if head.len() > MAX_HEAD {
                        self.lose();
                    }
                }
            }
        }
    }

    fn lose(&mut self) {
        self.state = State::Lost;
        self.ambiguous.store(true, Ordering::Relaxed);
    }
}

/// The length of the body that follows a head, or `None` when the head is ambiguous.
fn body_length(head: &[u8]) -> Option<u64> {
    let mut lines = head.split(|byte| *byte == b'\n');
    let request_line = lines.next()?;
    if request_line.contains(&b'#') {
        return None;
    }
    let mut length = None;
    for line in lines {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.first().is_some_and(u8::is_ascii_whitespace) || line.contains(&b'\r') {
            return None;
        }
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            if line.is_empty() {
                continue;
            }
            return None;
        };
        let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            return None;
        }
        if name.eq_ignore_ascii_case(b"content-length") {
            let plain = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
            let value = plain.then(|| std::str::from_utf8(value).ok()?.parse().ok())??;
            if length.replace(value).is_some() {
                return None;
            }
        }
    }
    Some(length.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ambiguous(wire: &[u8], cut: usize) -> bool {
        let (mut watched, ambiguous) = Watched::new(tokio::io::empty());
        for chunk in wire.chunks(cut) {
            watched.watcher.watch(chunk);
        }
        ambiguous.load(Ordering::Relaxed)
    }

    #[test]
    fn plain_requests_pass_however_they_are_cut() {
        let wire = b"\r\nGET /a HTTP/1.1\r\nhost: x\r\n\r\nPUT /b HTTP/1.1\r\ncontent-length: 5\r\n\r\n\n\n#\n\nGET /c HTTP/1.1\r\n\r\n";
        for cut in 1..wire.len() {
            assert!(!is_ambiguous(wire, cut), "cut into {cut}");
        }
    }

    #[test]
    fn ambiguous_requests_are_seen_however_they_are_cut() {
        for head in [
            "content-length: 1\r\ncontent-length: 1",
            "content-length: 1\r\nContent-Length: 2",
            "content-length: +1",
            "content-length: ",
            "content-length: 1, 1",
            "content-length: 0x1",
            "content-length: 99999999999999999999",
            "transfer-encoding: chunked",
            "transfer-encoding: identity",
            "content-length: 1\r\nTransfer-Encoding: chunked",
            "a: b\n c: d",
            "a: b\nc: d",
            "a: b\r\n c: d",
            "a: b\r\n\tc: d",
            "a: b\rc: d",
            "no colon",
        ] {
            let wire = format!("GET / HTTP/1.1\r\n{head}\r\n\r\n");
            for cut in [1, 3, wire.len()] {
                assert!(is_ambiguous(wire.as_bytes(), cut), "{head:?} passed");
            }
        }
        assert!(is_ambiguous(b"GET /a#b HTTP/1.1\r\n\r\n", 1));
    }
}
