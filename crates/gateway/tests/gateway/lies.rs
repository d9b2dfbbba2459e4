//! Whoever has stolen a gateway's credential, or stands between server and agent, can delay and
//! drop; nothing that it replays, alters, re-addresses or makes up has an effect on an agent.

use bytes::Bytes;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::{Epoch, SigningKey};
use http_body_util::{BodyExt as _, Full};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;

use crate::rig::{Pairs, Rig, Wire};

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

#[tokio::test]
async fn nothing_that_is_replayed_altered_readdressed_or_invented_has_an_effect() {
    let mut thief = Thief::new().await;
    let mut wire = thief.rig.wire().await;
    let (mine, other) = (
        thief.rig.make(&mut wire).await,
        thief.rig.make(&mut wire).await,
    );
    let foreign = SigningKey::generate().unwrap();
    let gateways_own = thief.rig.outer("PUT", FILE, b"evil");
    let cases = [
        (
            "altered body",
            mine.0,
            "PUT",
            FILE,
            thief.signed(mine, b"good"),
            &b"good"[..],
        ),
        (
            "altered method",
            mine.0,
            "DELETE",
            FILE,
            thief.signed(mine, b"evil"),
            b"evil",
        ),
        (
            "altered path",
            mine.0,
            "PUT",
            "/v1/files/other",
            thief.signed(mine, b"evil"),
            b"evil",
        ),
        (
            "added query",
            mine.0,
            "PUT",
            "/v1/files/marker?x",
            thief.signed(mine, b"evil"),
            b"evil",
        ),
        (
            "another sandbox",
            other.0,
            "PUT",
            FILE,
            thief.signed(mine, b"evil"),
            b"evil",
        ),
        (
            "another life",
            mine.0,
            "PUT",
            FILE,
            thief.signed((mine.0, Epoch::random().unwrap()), b"evil"),
            b"evil",
        ),
        (
            "a key of the thief's",
            mine.0,
            "PUT",
            FILE,
            thief.rig.inner(&foreign, mine, ("PUT", FILE), b"evil"),
            b"evil",
        ),
        ("no signature", mine.0, "PUT", FILE, Vec::new(), b"evil"),
        (
            "the gateway's signature",
            mine.0,
            "PUT",
            FILE,
            gateways_own,
            b"evil",
        ),
    ];
    for (what, sandbox, method, target, inner, signed_body) in cases {
        let inner: Pairs = inner
            .into_iter()
            .filter(|(name, _)| *name != "x-glovebox-content-sha256")
            .collect();
        let wanted = Wanted {
            sandbox,
            method,
            target,
            inner: inner.clone(),
            body: b"evil",
        };
        let is_own = inner.iter().any(|(name, _)| name.contains("gateway"));
        if !is_own {
            let (status, body) = thief.through_gateway(&wanted).await;
            assert_eq!(status, 401, "{what}: {}", String::from_utf8_lossy(&body));
        }
        let (status, body) = thief.as_gateway(&wanted, signed_body).await;
        assert_eq!(status, 401, "{what}: {}", String::from_utf8_lossy(&body));
        assert_eq!(thief.file(mine).await, None, "{what}");
        assert_eq!(thief.file(other).await, None, "{what}");
    }

    // The control, and then its replay by either way.
    let inner = thief.signed(mine, b"good");
    let wanted = Wanted {
        sandbox: mine.0,
        method: "PUT",
        target: FILE,
        inner,
        body: b"good",
    };
    let (status, _) = thief.through_gateway(&wanted).await;
    assert_eq!(status, 200);
    assert!(thief.file(mine).await.is_some());
    let remove = ("DELETE", FILE);
    let removed = thief.rig.ask_agent(&mut wire, mine, remove, b"").await;
    assert!(removed.status.is_success());
    let (status, body) = thief.through_gateway(&wanted).await;
    assert_eq!(status, 401, "{}", String::from_utf8_lossy(&body));
    let (status, _) = thief.as_gateway(&wanted, b"good").await;
    assert_eq!(status, 401);
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
