//! Whoever has stolen a gateway's credential, or stands between server and agent, can delay and
//! drop; nothing that it replays, alters, re-addresses or makes up has an effect on an agent.

use bytes::Bytes;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::{Epoch, SigningKey};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;

use crate::rig::Rig;
use crate::wire::{Pairs, Wire};

const FILE: &str = "/v1/files/marker";

/// A thief: signs for the gateway as it likes, and has seen what the server signed for agents.
struct Thief {
    rig: Rig,
    wire: Wire,
}

/// What the thief wants an agent to do.
struct Wanted<'a> {
    sandbox: SandboxId,
    method: &'a str,
    target: &'a str,
    inner: Pairs,
    body: &'a [u8],
}

impl Thief {
    async fn new() -> Self {
        let rig = Rig::start().await;
        let wire = rig.wire().await;
        Self { rig, wire }
    }

    /// Through the gateway with a credential that was stolen.
    async fn through_gateway(&mut self, wanted: &Wanted<'_>) -> (u16, Bytes) {
        let outside = format!("/v1/sandboxes/{}/agent{}", wanted.sandbox, wanted.target);
        let mut pairs = self.rig.outer(wanted.method, &outside, wanted.body);
        pairs.extend(wanted.inner.clone());
        let answer = self.wire.send(wanted.method, &outside, &pairs, wanted.body);
        let answer = answer.await.unwrap();
        (answer.status.as_u16(), answer.body)
    }

    /// In the gateway's place: straight to the agent.
    async fn as_gateway(&mut self, wanted: &Wanted<'_>, body_of: &[u8]) -> (u16, Bytes) {
        let stream = self.rig.runtime.connect(wanted.sandbox).await.unwrap();
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        let digest = glovebox_protocol::sign::BodyDigest::of(body_of).to_string();
        let mut request = Request::builder()
            .method(wanted.method)
            .uri(wanted.target)
            .header("host", "agent")
            .header("x-glovebox-content-sha256", digest);
        for (name, value) in &wanted.inner {
            request = request.header(*name, value);
        }
        let body = Full::new(Bytes::copy_from_slice(wanted.body));
        let response = sender.send_request(request.body(body).unwrap()).await;
        let response = response.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap();
        (status, body.to_bytes())
    }

    /// What stands in the file of a sandbox, asked by the rightful server.
    async fn file(&mut self, of: (SandboxId, Epoch)) -> Option<Vec<u8>> {
        let answer = self.rig.ask_agent(&mut self.wire, of, ("GET", FILE), b"");
        let answer = answer.await;
        answer.status.is_success().then(|| answer.body.to_vec())
    }

    fn signed(&self, of: (SandboxId, Epoch), body: &[u8]) -> Pairs {
        self.rig.inner(&self.rig.key, of, ("PUT", FILE), body)
    }
}

/// What is wrong, where it is sent to, how, with whose signature, and over which body.
type Lie<'a> = (&'a str, SandboxId, &'a str, &'a str, Pairs, &'a [u8]);

fn lies<'a>(thief: &Thief, mine: (SandboxId, Epoch), other: SandboxId) -> Vec<Lie<'a>> {
    let evil = thief.signed(mine, b"evil");
    let life = Epoch::random().unwrap();
    let foreign = SigningKey::generate().unwrap();
    let foreign = thief.rig.inner(&foreign, mine, ("PUT", FILE), b"evil");
    let another_life = thief.signed((mine.0, life), b"evil");
    let (of, put) = (mine.0, "PUT");
    let query = "/v1/files/marker?x";
    vec![
        (
            "altered body",
            of,
            put,
            FILE,
            thief.signed(mine, b"good"),
            b"good",
        ),
        ("altered method", of, "DELETE", FILE, evil.clone(), b"evil"),
        (
            "altered path",
            of,
            put,
            "/v1/files/other",
            evil.clone(),
            b"evil",
        ),
        ("added query", of, put, query, evil.clone(), b"evil"),
        ("another sandbox", other, put, FILE, evil, b"evil"),
        ("another life", of, put, FILE, another_life, b"evil"),
        ("a key of the thief's", of, put, FILE, foreign, b"evil"),
        ("no signature", of, put, FILE, Vec::new(), b"evil"),
    ]
}

#[tokio::test]
async fn nothing_that_is_altered_readdressed_or_invented_has_an_effect() {
    let mut thief = Thief::new().await;
    let mut wire = thief.rig.wire().await;
    let (mine, other) = (
        thief.rig.make(&mut wire).await,
        thief.rig.make(&mut wire).await,
    );
    for (what, sandbox, method, target, inner, signed_body) in lies(&thief, mine, other.0) {
        let wanted = Wanted {
            sandbox,
            method,
            target,
            inner,
            body: b"evil",
        };
        let (status, body) = thief.through_gateway(&wanted).await;
        assert_eq!(status, 401, "{what}: {}", String::from_utf8_lossy(&body));
        let (status, body) = thief.as_gateway(&wanted, signed_body).await;
        assert_eq!(status, 401, "{what}: {}", String::from_utf8_lossy(&body));
        assert_eq!(thief.file(mine).await, None, "{what}");
        assert_eq!(thief.file(other).await, None, "{what}");
    }
    // What a gateway signs with is nothing to an agent.
    let inner = thief.rig.outer("PUT", FILE, b"evil");
    let inner: Pairs = inner
        .into_iter()
        .filter(|(name, _)| *name != "x-glovebox-content-sha256")
        .collect();
    let wanted = Wanted {
        sandbox: mine.0,
        method: "PUT",
        target: FILE,
        inner,
        body: b"evil",
    };
    assert_eq!(thief.as_gateway(&wanted, b"evil").await.0, 401);
    assert_eq!(thief.file(mine).await, None);
}

#[tokio::test]
async fn what_the_server_signed_has_its_effect_once() {
    let mut thief = Thief::new().await;
    let mut wire = thief.rig.wire().await;
    let mine = thief.rig.make(&mut wire).await;
    let wanted = Wanted {
        sandbox: mine.0,
        method: "PUT",
        target: FILE,
        inner: thief.signed(mine, b"good"),
        body: b"good",
    };
    assert_eq!(thief.through_gateway(&wanted).await.0, 200);
    assert!(thief.file(mine).await.is_some());
    let remove = ("DELETE", FILE);
    let removed = thief.rig.ask_agent(&mut wire, mine, remove, b"").await;
    assert!(removed.status.is_success());
    assert_eq!(thief.through_gateway(&wanted).await.0, 401);
    assert_eq!(thief.as_gateway(&wanted, b"good").await.0, 401);
    assert_eq!(thief.file(mine).await, None);
}

#[tokio::test]
async fn a_stolen_credential_cannot_give_an_agent_another_key() {
    let thief = Thief::new().await;
    let mut wire = thief.rig.wire().await;
    let asked = thief.rig.create_request();
    for field in [
        "keys",
        "agent_keys",
        "key",
        "network",
        "mounts",
        "privileged",
        "devices",
    ] {
        let mut body = serde_json::to_value(&asked).unwrap();
        body[field] = serde_json::json!(["x"]);
        let body = serde_json::to_vec(&body).unwrap();
        let refused = thief
            .rig
            .ask(&mut wire, "POST", "/v1/sandboxes", &body)
            .await;
        assert_eq!(refused.code(), "invalid", "{field}");
    }
    assert!(thief.rig.runtime.list().await.unwrap().is_empty());
}
