//! Notices requests that two readers could understand in two ways, which an HTTP library would let
//! pass: a doubled length, a transfer coding, a line that ends without carriage return, a fragment
//! in the target.
//!
//! It looks at the raw bytes of a connection and changes none. Agent and gateway refuse what it
//! notices; otherwise one of them could check another request than the other obeys.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is to be shown every byte of a connection as it comes, and the flag that it raises for an
/// ambiguous request.
pub fn watch() -> (impl FnMut(&[u8]) + Send + Unpin, Arc<AtomicBool>) {
    let ambiguous = Arc::new(AtomicBool::new(false));
    let raised = Arc::clone(&ambiguous);
    let mut scanner = Scanner::default();
    let look = move |bytes: &[u8]| {
        scanner.scan(bytes);
        if scanner.is_ambiguous() {
            raised.store(true, Ordering::Relaxed);
        }
    };
    (look, ambiguous)
}

/// Longest head that is looked at, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Reads the bytes of one connection as they come, and notices the first ambiguous request.
#[derive(Debug)]
pub struct Scanner {
    state: State,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            state: State::Head(Vec::new()),
        }
    }
}

#[derive(Debug)]
enum State {
    /// In a head; holds what came of it so far.
    Head(Vec<u8>),
    /// In a body of which so many bytes are to come.
    Body(u64),
    /// Nothing that follows can be trusted to begin where it seems to.
    Lost,
}

impl Scanner {
    /// Whether there was an ambiguous request; then nothing that follows is looked at.
    #[must_use]
    pub const fn is_ambiguous(&self) -> bool {
        matches!(self.state, State::Lost)
    }

    /// Looks at the next bytes.
    pub fn scan(&mut self, mut bytes: &[u8]) {
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
        let mut scanner = Scanner::default();
        wire.chunks(cut).for_each(|chunk| scanner.scan(chunk));
        scanner.is_ambiguous()
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
