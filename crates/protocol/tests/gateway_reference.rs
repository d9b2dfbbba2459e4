//! The worked example in the gateway's reference is what this crate computes.

use glovebox_protocol::sign::{BodyDigest, Credential, Envelope, Epoch, Nonce};

const REFERENCE: &str = include_str!("../../../docs/reference/gateway-protocol.md");

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_reference_shows_what_is_signed_for_a_gateway_and_with_what_result() {
    let written = format!("gbg_{}", "09".repeat(32));
    let credential: Credential = written.parse().unwrap();
    let body = br#"{"start_limit_ms":0}"#;
    let envelope = Envelope {
        installation: "0192f0c1-2b3a-7c4d-8e5f-60718293a4b5".parse().unwrap(),
        audience: "0192f0c1-2b3a-7c4d-8e5f-60718293a4b7",
        epoch: "101112131415161718191a1b1c1d1e1f".parse::<Epoch>().unwrap(),
        method: "POST",
        path_and_query: "/v1/sandboxes/0192f0c1-2b3a-7c4d-8e5f-60718293a4b6/agent/v1/kernel",
        content_length: body.len() as u64,
        body: BodyDigest::of(body),
        unix_ms: 1_767_225_600_000,
        nonce: "e0e1e2e3e4e5e6e7e8e9eaebecedeeef".parse::<Nonce>().unwrap(),
        key: credential.id(),
    };
    let shown = [
        ("credential id", credential.id().to_string()),
        ("signed form", hex(&envelope.canonical_for_gateway())),
        ("signature", hex(&credential.sign(&envelope))),
    ];
    // In the document long values are broken into lines.
    let document: String = REFERENCE.split_whitespace().collect();
    for (what, value) in shown {
        assert!(document.contains(&value), "{what} is {value}");
    }
}
