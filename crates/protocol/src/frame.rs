//! Frames: how streams leave an agent.
//!
//! A streamed reply is a row of frames: one byte that says what it is, four bytes of length (big
//! endian), the payload. Output travels as it is, without escaping, so that a byte printed is a
//! byte delivered. The last frame of every stream is an [`FrameKind::Event`] that ends it; a
//! stream that stops without one was cut.

use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Largest payload of one frame, in bytes.
pub const MAX_PAYLOAD: usize = 16 * 1024 * 1024;

/// Bytes in front of each payload.
pub const HEADER: usize = 5;

/// Media type of a framed stream.
pub const MEDIA_TYPE: &str = "application/x-glovebox-frames";

/// What a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// A JSON document: an [`crate::event::EventBody`], or the document that ends the stream.
    Event,
    /// Bytes that the program wrote to standard output.
    Stdout,
    /// Bytes that the program wrote to standard error.
    Stderr,
    /// Bytes of a file.
    Data,
}

impl FrameKind {
    const fn byte(self) -> u8 {
        match self {
            Self::Event => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Data => 3,
        }
    }

    const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Event),
            1 => Some(Self::Stdout),
            2 => Some(Self::Stderr),
            3 => Some(Self::Data),
            _ => None,
        }
    }
}

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What the payload is.
    pub kind: FrameKind,
    /// The payload, as it is.
    pub payload: Bytes,
}

/// A peer sent something that is no frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// The first byte names no kind of frame.
    #[error("{0} is no kind of frame")]
    UnknownKind(u8),
    /// The length is over [`MAX_PAYLOAD`].
    #[error("a frame of {0} bytes is over the limit of {MAX_PAYLOAD}")]
    TooLong(u32),
}

/// The bytes that come before a payload of this kind and length.
///
/// # Errors
/// When the payload is longer than [`MAX_PAYLOAD`].
pub fn header(kind: FrameKind, length: usize) -> Result<[u8; HEADER], FrameFault> {
    let length = u32::try_from(length).map_err(|_| FrameFault::TooLong(u32::MAX))?;
    if length as usize > MAX_PAYLOAD {
        return Err(FrameFault::TooLong(length));
    }
    let mut header = [kind.byte(), 0, 0, 0, 0];
    header[1..].copy_from_slice(&length.to_be_bytes());
    Ok(header)
}

/// One frame as bytes.
///
/// # Errors
/// When the payload is longer than [`MAX_PAYLOAD`].
pub fn encode(kind: FrameKind, payload: &[u8]) -> Result<Bytes, FrameFault> {
    let header = header(kind, payload.len())?;
    let mut frame = BytesMut::with_capacity(HEADER + payload.len());
    frame.put_slice(&header);
    frame.put_slice(payload);
    Ok(frame.freeze())
}

/// Most values that a JSON document from a sandbox may hold.
pub const MAX_VALUES: usize = 250_000;

/// Most levels of lists and objects that a JSON document from a sandbox may have. Readers of JSON
/// refuse some number of levels, and not all the same one.
pub const MAX_DEPTH: usize = 64;

/// Whether a JSON document holds few enough values, in few enough levels, to be taken into memory.
/// Two bytes of text can become one value of dozens, so its length alone bounds nothing. To be
/// asked before parsing.
#[must_use]
pub fn is_modest(json: &[u8]) -> bool {
    let mut values = 1;
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            // To the end of the string, over escaped quotes.
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => {
                            bytes.next();
                        }
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            b',' => values += 1,
            b'[' | b'{' => {
                values += 1;
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    values <= MAX_VALUES && deepest <= MAX_DEPTH
}

/// Takes frames out of a row of chunks that were cut anywhere.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: BytesMut,
}

impl Decoder {
    /// Adds bytes as they came.
    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next whole frame, if there is one.
    ///
    /// # Errors
    /// When the bytes are no frame; the stream is of no use afterwards.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, FrameFault> {
        let [kind, a, b, c, d] = match self.buffer.first_chunk::<HEADER>() {
            Some(header) => *header,
            None => return Ok(None),
        };
        let kind = FrameKind::from_byte(kind).ok_or(FrameFault::UnknownKind(kind))?;
        let length = u32::from_be_bytes([a, b, c, d]);
        if length as usize > MAX_PAYLOAD {
            return Err(FrameFault::TooLong(length));
        }
        if self.buffer.len() < HEADER + length as usize {
            return Ok(None);
        }
        self.buffer.advance(HEADER);
        let payload = self.buffer.split_to(length as usize).freeze();
        Ok(Some(Frame { kind, payload }))
    }

    /// Whether a frame has begun and not ended.
    #[must_use]
    pub fn is_mid_frame(&self) -> bool {
        !self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hostile_length_is_refused_before_anything_is_kept() {
        let mut decoder = Decoder::default();
        decoder.push(&[1, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_frame(), Err(FrameFault::TooLong(u32::MAX)));
    }

    #[test]
    fn a_document_of_many_values_is_known_before_it_is_parsed() {
        let many = format!("[{}0]", "0,".repeat(MAX_VALUES));
        assert!(!is_modest(many.as_bytes()));
        let text = format!(
            r#"{{"a":"{}\"{}"}}"#,
            ",".repeat(MAX_VALUES),
            "[".repeat(MAX_VALUES)
        );
        assert!(is_modest(text.as_bytes()));
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        assert!(!is_modest("[".repeat(MAX_DEPTH + 1).as_bytes()));
        assert!(is_modest("[],".repeat(1000).as_bytes()));
    }

    proptest! {
        #[test]
        fn frames_survive_being_cut_anywhere(
            payloads in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..200), 0..8),
            cut in 1usize..64,
        ) {
            let mut wire = Vec::new();
            for payload in &payloads {
                wire.extend_from_slice(&encode(FrameKind::Stdout, payload).unwrap());
            }
            let mut decoder = Decoder::default();
            let mut seen = Vec::new();
            for chunk in wire.chunks(cut) {
                decoder.push(chunk);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    seen.push(frame.payload.to_vec());
                }
            }
            prop_assert_eq!(seen, payloads);
            prop_assert!(!decoder.is_mid_frame());
        }

        #[test]
        fn no_bytes_make_the_decoder_panic(wire in proptest::collection::vec(any::<u8>(), 0..500)) {
            let mut decoder = Decoder::default();
            decoder.push(&wire);
            while let Ok(Some(_)) = decoder.next_frame() {}
        }
    }
}
