//! Server-sent events of a model endpoint, which may send anything: what is read of any bytes is the
//! same however they are cut, no event is longer than may be, and nothing comes of nothing.

#![no_main]

use glovebox_fuzz::{Bytes, pieces};
use libfuzzer_sys::fuzz_target;
use sse::{Events, MAX_EVENT, TooLong};

// The reader stands within the server, which takes long to build: it is taken in by itself.
#[path = "../../crates/server/src/chat/model/sse.rs"]
mod sse;

fn take(wire: &[u8], cuts: &[u8]) -> Result<Vec<String>, TooLong> {
    let mut events = Events::default();
    let mut whole = Vec::new();
    for piece in pieces(wire, cuts) {
        whole.extend(events.push(piece)?);
    }
    whole.extend(events.end()?);
    assert_eq!(events.end(), Ok(Vec::new()), "it was over");
    Ok(whole)
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Bytes::new(data);
    let cuts = bytes.few();
    let wire = bytes.rest();
    let cut = take(wire, cuts);
    assert_eq!(cut, take(wire, &[]));
    // What is no UTF-8 is shown by a sign of three bytes in place of one.
    let events = cut.unwrap_or_default();
    assert!(events.iter().all(|event| event.len() <= 3 * MAX_EVENT));
    let given: usize = events.iter().map(String::len).sum();
    assert!(given <= 3 * wire.len(), "more came than was sent");
});
