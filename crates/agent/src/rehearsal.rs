//! What an agent does once before anybody needs it, in a sandbox that is made in advance: then the
//! code for it is in memory, and the first request that counts does not wait for it.

use std::sync::Weak;
use std::time::Instant;

use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::{
    BodyDigest, Envelope, Epoch, Nonce, Now, SignedHeaders, SigningKey, Verifier,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

use crate::http;
use crate::shared::Shared;

/// The one request that needs no signature.
const REQUEST: &[u8] = b"GET /v1/health HTTP/1.1\r\nhost: agent\r\n\r\n";

/// Answers a request that nobody has sent, and checks a signature that nobody has made.
pub(crate) async fn first_request(shared: Weak<Shared>) {
    let Some(shared) = shared.upgrade() else {
        return;
    };
    let (mut ours, theirs) = duplex(4096);
    let serving = tokio::spawn(http::serve(shared, theirs, std::future::pending()));
    let mut answer = [0; 1024];
    // That it did not come to an answer shows in a first request that takes longer, and nowhere
    // else.
    if ours.write_all(REQUEST).await.is_ok() {
        let _ = ours.read(&mut answer).await;
    }
    drop(ours);
    let _ = serving.await;
    let _ = check_a_signature();
}

fn check_a_signature() -> Option<()> {
    let key = SigningKey::generate().ok()?;
    let epoch = Epoch::random().ok()?;
    let installation = InstallationId::new();
    let envelope = Envelope {
        installation,
        audience: "rehearsal",
        epoch,
        method: "GET",
        path_and_query: "/",
        content_length: 0,
        body: BodyDigest::of(b""),
        unix_ms: 0,
        nonce: Nonce::random().ok()?,
        key: key.id(),
    };
    let headers = SignedHeaders {
        key: key.id(),
        epoch,
        unix_ms: 0,
        nonce: envelope.nonce,
        body: envelope.body,
        signature: key.sign(&envelope),
    };
    let keys = vec![key.public()];
    let mut verifier = Verifier::new(installation, "rehearsal".into(), epoch, keys);
    let now = Now {
        unix_ms: 0,
        steady: Instant::now(),
    };
    verifier.verify("GET", "/", 0, &headers, now).ok().map(drop)
}
