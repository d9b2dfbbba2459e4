//! The worked example in the protocol reference is what this crate computes.

use glovebox_protocol::sign::{BodyDigest, Envelope, Epoch, Nonce, SigningKey};

const REFERENCE: &str = include_str!("../../../docs/reference/agent-protocol.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_reference_shows_what_is_signed_and_with_what_result() {
    let key = SigningKey::from_seed(&[7; 32]).unwrap();
    let body = br#"{"start_limit_ms":0}"#;
    let envelope = Envelope {
        installation: "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5".parse().unwrap(),
        audience: "0192f0c1-2b3a-7c4d-8e5f-60718293a4b6",
        epoch: "000102030405060708090a0b0c0d0e0f".parse::<Epoch>().unwrap(),
        method: "POST",
        path_and_query: "/v1/kernel",
        content_length: body.len() as u64,
        body: BodyDigest::of(body),
        unix_ms: 1_767_225_600_000,
        nonce: "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff".parse::<Nonce>().unwrap(),
        key: key.id(),
    };
    let shown = [
        ("public key", key.public().to_string()),
        ("key id", key.id().to_string()),
        ("body hash", envelope.body.to_string()),
        ("signed form", hex(&envelope.canonical())),
        ("signature", hex(&key.sign(&envelope))),
    ];
    // In the document long values are broken into lines.
    let document: String = REFERENCE.split_whitespace().collect();
    for (what, value) in shown {
        assert!(document.contains(&value), "{what} is {value}");
    }
}
