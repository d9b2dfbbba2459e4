//! Server-sent events, as model endpoints send them.
//!
//! By itself the format loses an event that no empty line ends, and knows no line without a field;
//! both occur where endpoints break off. So this reads more than the format has, and no more than
//! [`MAX_EVENT`] bytes of one event.

/// Most bytes of one line or event.
pub(super) const MAX_EVENT: usize = 1024 * 1024;

/// One event or line is longer than anything that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads events from bytes that come in any pieces.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A line has ended with a carriage return: a line feed right after it ends no other.
    after_return: bool,
}

impl Events {
    /// Takes more bytes and gives the data of the events that are whole now.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<String>, TooLong> {
        let mut whole = Vec::new();
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (part, end) = (&rest[..at], rest[at]);
            rest = &rest[at + 1..];
            let is_second_half = at == 0 && end == b'\n' && self.after_return;
            self.after_return = end == b'\r';
            if is_second_half {
                continue;
            }
            self.keep(part)?;
            let line = std::mem::take(&mut self.line);
            self.take_line(&line, &mut whole)?;
        }
        if !rest.is_empty() {
            self.after_return = false;
            self.keep(rest)?;
        }
        Ok(whole)
    }

    /// What is left when nothing more comes.
    pub(super) fn end(&mut self) -> Result<Vec<String>, TooLong> {
        let mut whole = Vec::new();
        let line = std::mem::take(&mut self.line);
        self.take_line(&line, &mut whole)?;
        whole.extend(self.event());
        Ok(whole)
    }

    fn keep(&mut self, part: &[u8]) -> Result<(), TooLong> {
        if self.line.len() + part.len() > MAX_EVENT {
            return Err(TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take_line(&mut self, line: &[u8], whole: &mut Vec<String>) -> Result<(), TooLong> {
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        if line.is_empty() {
            whole.extend(self.event());
            return Ok(());
        }
        let data = match line.strip_prefix(b"data:") {
            Some(data) => data.strip_prefix(b" ").unwrap_or(data),
            // A document that stands there without a field: an error, or one answer a line.
            None if line.starts_with(b"{") => line,
            // Comments, which only keep the connection alive, and fields that say nothing to us.
            None => return Ok(()),
        };
        // Some servers put no empty line between two events.
        if self.has_data && is_whole(&self.data) {
            whole.extend(self.event());
        }
        if self.data.len() + data.len() > MAX_EVENT {
            return Err(TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(data);
        Ok(())
    }

    fn event(&mut self) -> Option<String> {
        let data = std::mem::take(&mut self.data);
        std::mem::take(&mut self.has_data).then(|| String::from_utf8_lossy(&data).into_owned())
    }
}

fn is_whole(data: &[u8]) -> bool {
    data == b"[DONE]" || serde_json::from_slice::<serde::de::IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in pieces of this many bytes.
    fn read(text: &str, size: usize) -> Vec<String> {
        let mut events = Events::default();
        let mut whole = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            whole.extend(events.push(piece).unwrap());
        }
        whole.extend(events.end().unwrap());
        whole
    }

    #[test]
    fn events_are_the_same_in_whatever_pieces_they_come() {
        let text = "\u{feff}: alive\ndata: {\"a\": \"ü€🙂\"}\n\nevent: x\r\nid: 1\r\ndata:{\"b\": 1}\r\n\r\n\
                    data: two\rdata: lines\r\r: more\n\n\ndata: [DONE]\n\n";
        let expected = ["{\"a\": \"ü€🙂\"}", "{\"b\": 1}", "two\nlines", "[DONE]"];
        for size in 1..text.len() {
            assert_eq!(read(text, size), expected, "in pieces of {size}");
        }
    }

    #[test]
    fn what_was_not_ended_counts_too() {
        assert_eq!(read("data: {\"a\": 1}", 4), ["{\"a\": 1}"]);
        assert_eq!(
            read("data: {\"a\": 1}\ndata: {\"b\": 2}\ndata: [DONE]\n", 5),
            ["{\"a\": 1}", "{\"b\": 2}", "[DONE]"]
        );
        assert_eq!(read("{\"error\": \"x\"}\n", 3), ["{\"error\": \"x\"}"]);
        assert_eq!(read("", 1), Vec::<String>::new());
        assert_eq!(read("data:\n\n", 1), [""]);
    }

    #[test]
    fn an_endless_line_or_event_is_given_up() {
        let mut events = Events::default();
        let piece = vec![b'x'; 64 * 1024];
        let mut taken = 0;
        while events.push(&piece).is_ok() {
            taken += piece.len();
        }
        assert!(taken <= MAX_EVENT, "{taken}");
        let mut events = Events::default();
        let line = format!("data: {}\n", "x".repeat(1024));
        let mut taken = 0;
        while events.push(line.as_bytes()).is_ok() {
            taken += line.len();
        }
        assert!(taken <= 2 * MAX_EVENT, "{taken}");
    }
}
