//! Who is obeyed: the table of security.md, group A, at the socket itself.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use glovebox_client::{AgentClient, ByteStream, Identity, UnixConnector};
use glovebox_protocol::error::{ErrorBody, ErrorCode};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::sign::{BodyDigest, Envelope, Epoch, Nonce, SignedHeaders, SigningKey};
use support::TestAgent;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// A request that is put together by hand, and may be wrong in any part.
#[derive(Clone)]
struct Raw {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Raw {
    /// A rightly signed request that writes a file.
    async fn put(test: &TestAgent, target: &str, body: &[u8]) -> Self {
        Self::signed(test, "PUT", target, body, now_ms(test)).await
    }

    async fn signed(test: &TestAgent, method: &str, target: &str, body: &[u8], at: i64) -> Self {
        let epoch = test.client.health().await.unwrap().epoch;
        Self::signed_by(&test.identity, epoch, (method, target, body), at)
    }

    fn signed_by(
        identity: &Identity,
        epoch: Epoch,
        (method, target, body): (&str, &str, &[u8]),
        unix_ms: i64,
    ) -> Self {
        let audience = identity.sandbox.to_string();
        let envelope = Envelope {
            installation: identity.installation,
            audience: &audience,
            epoch,
            method,
            path_and_query: target,
            content_length: body.len() as u64,
            body: BodyDigest::of(body),
            unix_ms,
            nonce: Nonce::random().unwrap(),
            key: identity.key.id(),
        };
        let signed = SignedHeaders {
            key: envelope.key,
            epoch,
            unix_ms,
            nonce: envelope.nonce,
            body: envelope.body,
            signature: identity.key.sign(&envelope),
        };
        let mut headers = vec![
            ("host".to_owned(), "agent".to_owned()),
            ("content-length".to_owned(), body.len().to_string()),
        ];
        let signature = signed.to_pairs();
        headers.extend(signature.map(|(name, value)| (name.to_owned(), value)));
        Self {
            line: format!("{method} {target} HTTP/1.1"),
            headers,
            body: body.to_vec(),
        }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = format!("{}\r\n", self.line).into_bytes();
        for (name, value) in &self.headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&self.body);
        bytes
    }

    fn value(&mut self, name: &str) -> &mut String {
        let found = self.headers.iter_mut().find(|(key, _)| key == name);
        &mut found.unwrap().1
    }

    fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(key, _)| key != name);
        self
    }

    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        *self.value(name) = value.into();
        self
    }

    fn doubled(mut self, name: &str) -> Self {
        let value = self.value(name).clone();
        self.headers.push((name.into(), value));
        self
    }
}

fn now_ms(test: &TestAgent) -> i64 {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    match test.clock_ms.load(Ordering::Relaxed) {
        0 => i64::try_from(now.as_millis()).unwrap(),
        fixed => fixed,
    }
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
    /// Whether the connection was closed afterwards.
    closed: bool,
}

impl Answer {
    fn code(&self) -> ErrorCode {
        serde_json::from_slice::<ErrorBody>(&self.body)
            .unwrap()
            .code
    }
}

/// Sends bytes and reads one answer.
async fn send(test: &TestAgent, bytes: &[u8]) -> Option<Answer> {
    let mut stream = UnixStream::connect(&test.socket).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    let head_end = loop {
        if let Some(at) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        if stream.read_buf(&mut answer).await.unwrap_or(0) == 0 {
            return None;
        }
    };
    let head = String::from_utf8(answer[..head_end].to_vec())
        .unwrap()
        .to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.unwrap().parse().unwrap();
    while answer.len() < head_end + length {
        assert!(stream.read_buf(&mut answer).await.unwrap() > 0);
    }
    let closed = head.contains("connection: close");
    if closed {
        assert_eq!(
            stream.read_buf(&mut answer).await.unwrap_or(0),
            0,
            "the connection stays open"
        );
    }
    Some(Answer {
        status: head[9..12].parse().unwrap(),
        body: answer[head_end..head_end + length].to_vec(),
        head,
        closed,
    })
}

async fn refused(test: &TestAgent, request: &Raw, code: ErrorCode, why: &str) {
    let answer = send(test, &request.bytes()).await.unwrap();
    assert_eq!((answer.status, answer.code()), (401, code), "{why}");
    assert!(answer.head.contains("x-glovebox-epoch: "), "{why}");
    assert_eq!(
        fs_err::read_dir(&test.workspace).unwrap().count(),
        0,
        "{why}: it had an effect"
    );
}

#[tokio::test]
async fn a_rightly_signed_request_is_obeyed_once() {
    let test = TestAgent::start().await;
    let request = Raw::put(&test, "/v1/files/a", b"body").await;
    assert_eq!(send(&test, &request.bytes()).await.unwrap().status, 200);
    fs_err::remove_file(test.workspace.join("a")).unwrap();
    refused(&test, &request, ErrorCode::Replayed, "replayed").await;
    test.clock_ms
        .store(now_ms(&test) + 59_000, Ordering::Relaxed);
    refused(
        &test,
        &request,
        ErrorCode::Replayed,
        "replayed late in its window",
    )
    .await;
}

#[tokio::test]
async fn missing_doubled_and_malformed_headers_are_refused() {
    let test = TestAgent::start().await;
    for name in glovebox_protocol::sign::names::ALL {
        let right = Raw::put(&test, "/v1/files/a", b"body").await;
        let missing = ErrorCode::AuthMissing;
        refused(
            &test,
            &right.clone().without(name),
            missing,
            &format!("no {name}"),
        )
        .await;
        refused(
            &test,
            &right.clone().doubled(name),
            missing,
            &format!("two {name}"),
        )
        .await;
        for value in ["", " ", "x", "-1", "1.5", &"f".repeat(3000), "\u{e9}"] {
            let request = right.clone().set(name, value);
            refused(
                &test,
                &request,
                ErrorCode::AuthRejected,
                &format!("{name}: {value:?}"),
            )
            .await;
        }
    }
    let right = Raw::put(&test, "/v1/files/a", b"body").await;
    let mut upper = right.clone();
    *upper.value("x-glovebox-content-sha256") = BodyDigest::of(b"body").to_string().to_uppercase();
    refused(&test, &upper, ErrorCode::AuthRejected, "an uppercase hash").await;
    let basic = Raw {
        headers: vec![
            ("authorization".into(), "Basic eDp5".into()),
            ("content-length".into(), "4".into()),
        ],
        ..right
    };
    refused(&test, &basic, ErrorCode::AuthMissing, "another scheme").await;
}

#[tokio::test]
async fn times_are_accepted_up_to_exactly_a_minute_off() {
    let test = TestAgent::start().await;
    let now = now_ms(&test);
    test.clock_ms.store(now, Ordering::Relaxed);
    for (at, accepted) in [
        (now + 60_000, true),
        (now + 60_001, false),
        (now + 59_000, true),
        (now + 61_000, false),
        (now - 60_000, true),
        (now - 60_001, false),
        (i64::MAX, false),
        (0, false),
    ] {
        let request = Raw::signed(&test, "GET", "/v1/status", b"", at).await;
        let answer = send(&test, &request.bytes()).await.unwrap();
        let off = at - now;
        assert_eq!(
            answer.status,
            if accepted { 200 } else { 401 },
            "{off} ms off"
        );
        if !accepted {
            assert_eq!(answer.code(), ErrorCode::ClockSkew, "{off} ms off");
        }
    }
    let seconds = Raw::signed(&test, "GET", "/v1/status", b"", now_ms(&test) / 1000).await;
    refused(
        &test,
        &seconds,
        ErrorCode::ClockSkew,
        "seconds for milliseconds",
    )
    .await;
}

#[tokio::test]
async fn nothing_of_a_signed_request_can_be_altered() {
    let test = TestAgent::start().await;
    let right = Raw::put(&test, "/v1/files/a", b"body").await;
    let altered = |line: &str| Raw {
        line: line.into(),
        ..right.clone()
    };
    for line in [
        "POST /v1/files/a HTTP/1.1",
        "DELETE /v1/files/a HTTP/1.1",
        "PUT /v1/files/b HTTP/1.1",
        "PUT /v1/files/a? HTTP/1.1",
        "PUT /v1/files/a?x=y HTTP/1.1",
        "PUT //v1/files/a HTTP/1.1",
        "PUT /v1/./files/a HTTP/1.1",
        "PUT /v1/files/a/ HTTP/1.1",
        "PUT /v1/files/%61 HTTP/1.1",
        "PUT /v1%2Ffiles/a HTTP/1.1",
    ] {
        refused(&test, &altered(line), ErrorCode::AuthRejected, line).await;
    }
    let mut body = right.clone();
    body.body[0] ^= 1;
    refused(&test, &body, ErrorCode::BodyMismatch, "one bit of the body").await;
    let mut shorter = Raw::put(&test, "/v1/files/a", b"body")
        .await
        .set("content-length", "3");
    shorter.body.pop();
    refused(&test, &shorter, ErrorCode::AuthRejected, "a shorter body").await;
    let mut empty = Raw::put(&test, "/v1/files/a", b"body")
        .await
        .without("content-length");
    empty.body.clear();
    refused(&test, &empty, ErrorCode::AuthRejected, "no body").await;
    for (name, value) in [
        ("x-glovebox-time", (now_ms(&test) + 1).to_string()),
        ("x-glovebox-nonce", Nonce::random().unwrap().to_string()),
        ("x-glovebox-epoch", Epoch::random().unwrap().to_string()),
        ("x-glovebox-content-sha256", BodyDigest::of(b"").to_string()),
        ("x-glovebox-key", "0".repeat(16)),
        ("x-glovebox-signature", "0".repeat(128)),
    ] {
        let request = Raw::put(&test, "/v1/files/a", b"body")
            .await
            .set(name, &value);
        refused(&test, &request, ErrorCode::AuthRejected, name).await;
    }
    // The Host header is no part of the signature, because nothing is decided by it.
    let host = Raw::put(&test, "/v1/status", b"")
        .await
        .set("host", "other");
    assert_ne!(send(&test, &host.bytes()).await.unwrap().status, 401);
}

#[tokio::test]
async fn only_the_right_key_installation_sandbox_and_life_are_obeyed() {
    let test = TestAgent::start().await;
    let epoch = test.client.health().await.unwrap().epoch;
    let right = &test.identity;
    let others = [
        Identity {
            key: Arc::new(SigningKey::generate().unwrap()),
            ..right.clone()
        },
        Identity {
            installation: InstallationId::new(),
            ..right.clone()
        },
        Identity {
            sandbox: SandboxId::new(),
            ..right.clone()
        },
    ];
    for identity in others {
        let request = Raw::signed_by(&identity, epoch, ("PUT", "/v1/files/a", b""), now_ms(&test));
        refused(&test, &request, ErrorCode::AuthRejected, "another identity").await;
        let client = AgentClient::new(identity, UnixConnector(test.socket.clone()));
        assert_eq!(
            client.status().await.unwrap_err().code(),
            Some(ErrorCode::AuthRejected)
        );
    }
    let old = Epoch::random().unwrap();
    let request = Raw::signed_by(right, old, ("PUT", "/v1/files/a", b""), now_ms(&test));
    refused(&test, &request, ErrorCode::AuthRejected, "another life").await;
    // A request made for one sandbox's agent is worth nothing at another's.
    let sibling = TestAgent::start().await;
    let request = Raw::put(&test, "/v1/files/a", b"x").await;
    refused(
        &sibling,
        &request,
        ErrorCode::AuthRejected,
        "a sibling's request",
    )
    .await;
}

#[tokio::test]
async fn every_kind_of_forgery_gets_the_same_answer() {
    let test = TestAgent::start().await;
    let mut answers = Vec::new();
    for name in [
        "x-glovebox-signature",
        "x-glovebox-key",
        "x-glovebox-epoch",
        "x-glovebox-nonce",
    ] {
        let request = Raw::put(&test, "/v1/files/a", b"body").await;
        let length = request
            .headers
            .iter()
            .find(|(key, _)| key == name)
            .unwrap()
            .1
            .len();
        let answer = send(&test, &request.set(name, &"1".repeat(length)).bytes())
            .await
            .unwrap();
        answers.push(answer.body);
    }
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]));
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_is_refused_and_the_connection_closed() {
    let test = TestAgent::start().await;
    let right = Raw::put(&test, "/v1/files/a", b"body").await;
    let line = |line: &str| {
        Raw {
            line: line.into(),
            ..right.clone()
        }
        .bytes()
    };
    let bare = String::from_utf8(right.bytes())
        .unwrap()
        .replacen("\r\nhost", "\nhost", 1);
    let folded =
        String::from_utf8(right.bytes())
            .unwrap()
            .replacen("host: agent", "host: a\r\n gent", 1);
    let requests: Vec<(&str, Vec<u8>)> = vec![
        (
            "CL and TE",
            right.clone().with("transfer-encoding", "chunked").bytes(),
        ),
        (
            "TE alone",
            right
                .clone()
                .without("content-length")
                .with("transfer-encoding", "chunked")
                .bytes(),
        ),
        (
            "TE gzip, chunked",
            right
                .clone()
                .with("transfer-encoding", "gzip, chunked")
                .bytes(),
        ),
        (
            "two equal CL",
            right.clone().doubled("content-length").bytes(),
        ),
        ("two CL", right.clone().with("content-length", "5").bytes()),
        (
            "CL with plus",
            right.clone().set("content-length", "+4").bytes(),
        ),
        (
            "CL list",
            right.clone().set("content-length", "4, 4").bytes(),
        ),
        (
            "CL hexadecimal",
            right.clone().set("content-length", "0x4").bytes(),
        ),
        ("bare line feed", bare.into_bytes()),
        ("folded header", folded.into_bytes()),
        (
            "absolute form",
            line("PUT http://agent/v1/files/a HTTP/1.1"),
        ),
        ("fragment", line("PUT /v1/files/a#b HTTP/1.1")),
        ("HTTP/1.0", line("PUT /v1/files/a HTTP/1.0")),
        ("asterisk", line("OPTIONS * HTTP/1.1")),
        ("upgrade", right.clone().with("upgrade", "h2c").bytes()),
        (
            "compressed",
            right.clone().with("content-encoding", "gzip").bytes(),
        ),
        (
            "space before colon",
            right.clone().with("x-a ", "b").bytes(),
        ),
    ];
    for (why, bytes) in requests {
        let answer = send(&test, &bytes)
            .await
            .unwrap_or_else(|| panic!("{why}: no answer"));
        assert_eq!(answer.status, 400, "{why}");
        assert!(answer.closed, "{why}: the connection stays open");
    }
    // There is no other protocol to change to.
    let answer = send(&test, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(answer.is_none_or(|answer| answer.status == 400));
    assert_eq!(fs_err::read_dir(&test.workspace).unwrap().count(), 0);
}

#[tokio::test]
async fn a_second_request_hidden_in_a_body_is_a_body() {
    let test = TestAgent::start().await;
    let hidden = Raw::put(&test, "/v1/files/hidden", b"x").await.bytes();
    let request = Raw::put(&test, "/v1/files/outer", &hidden).await;
    assert_eq!(send(&test, &request.bytes()).await.unwrap().status, 200);
    assert!(!test.workspace.join("hidden").exists());
}

#[tokio::test]
async fn an_unsigned_caller_learns_only_the_health() {
    let test = TestAgent::start().await;
    for target in [
        "/v1/status",
        "/v1/list",
        "/v1/files/a",
        "/v1/kernel",
        "/",
        "/v1/health/",
        "/v1/health?x",
        "/v1/nothing",
        "//v1/health",
    ] {
        let answer = send(&test, format!("GET {target} HTTP/1.1\r\n\r\n").as_bytes())
            .await
            .unwrap();
        assert_eq!(answer.status, 401, "{target}");
    }
    let answer = send(&test, b"GET /v1/health HTTP/1.1\r\n\r\n")
        .await
        .unwrap();
    let health: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    let fields: Vec<_> = health.as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["epoch", "protocol"]);
}

#[tokio::test]
async fn garbage_costs_a_connection_and_nothing_else() {
    let test = TestAgent::start().await;
    for bytes in [
        &b"\0\xff\xfe garbage\r\n\r\n"[..],
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        &[b'A'; 300_000],
    ] {
        let mut stream = UnixStream::connect(&test.socket).await.unwrap();
        // The agent may close before all is sent.
        let _ = stream.write_all(bytes).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(
            answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"),
            "{answer:?}"
        );
    }
    test.client.status().await.unwrap();
}

#[tokio::test]
async fn an_agent_in_its_next_life_is_obeyed_after_one_more_try() {
    let first = TestAgent::start().await;
    // The same sandbox and keys, another epoch.
    let next = TestAgent::start_with(
        |config| {
            let claim = config.claim.as_mut().unwrap();
            claim.sandbox = first.identity.sandbox;
            claim.installation = first.identity.installation;
            claim.keys = vec![first.identity.key.public()];
        },
        Default::default(),
    )
    .await;
    let agents = [first.agent.clone(), next.agent.clone()];
    let connections = Arc::new(std::sync::Mutex::new(Vec::new()));
    let made = Arc::clone(&connections);
    let client = AgentClient::new(first.identity.clone(), move || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let mut made = made.lock().unwrap();
        let agent = agents[made.len().min(1)].clone();
        made.push(tokio::spawn(
            async move { agent.serve_connection(theirs).await },
        ));
        std::future::ready(Ok(Box::new(ours) as Box<dyn ByteStream>))
    });
    client.status().await.unwrap();
    let connection = connections.lock().unwrap().pop().unwrap();
    connection.abort();
    connection.await.unwrap_err();
    connections.lock().unwrap().push(tokio::spawn(async {}));
    assert_eq!(client.list(None).await.unwrap().entries, []);
}
