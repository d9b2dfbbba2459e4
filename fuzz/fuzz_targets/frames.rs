//! Frames of an agent's streams: what is taken out of any bytes is what they hold, however they are
//! cut; and a document that passes for a modest one is.

#![no_main]

use glovebox_fuzz::{Bytes, pieces};
use glovebox_protocol::frame::{
    Decoder, Frame, FrameFault, MAX_DEPTH, MAX_PAYLOAD, encode, is_modest,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn take(wire: &[u8], cuts: &[u8]) -> (Vec<Frame>, Option<FrameFault>, bool) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in pieces(wire, cuts) {
        decoder.push(piece);
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(fault) => return (frames, Some(fault), true),
            }
        }
    }
    (frames, None, decoder.is_mid_frame())
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        Value::Object(values) => 1 + values.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let cuts = bytes.few();
    let wire = bytes.rest();

    let (frames, fault, is_open) = take(wire, cuts);
    let whole = take(wire, &[]);
    assert_eq!((&frames, &fault, is_open), (&whole.0, &whole.1, whole.2));
    let mut again = Vec::new();
    for frame in &frames {
        assert!(frame.payload.len() <= MAX_PAYLOAD);
        again.extend(encode(frame.kind, &frame.payload).expect("it came in a frame"));
        if is_modest(&frame.payload)
            && let Ok(value) = serde_json::from_slice::<Value>(&frame.payload)
        {
            assert!(depth(&value) <= MAX_DEPTH);
        }
    }
    assert!(wire.starts_with(&again), "the frames are not what came");
    assert_eq!(is_open, wire.len() > again.len());
});
