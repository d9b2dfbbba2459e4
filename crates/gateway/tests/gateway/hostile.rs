//! Clients that mean no good, while somebody with a credential is served.

use hyper::StatusCode;
use proptest::strategy::{Strategy as _, ValueTree as _};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::rig::Rig;
use crate::wire::Wire;

/// What is answered to raw bytes, until the gateway closes or has said all.
async fn say(rig: &Rig, bytes: &[u8]) -> String {
    let mut stream = rig.tls().await;
    // A gateway that has heard enough closes while more is coming.
    let _ = stream.write_all(bytes).await;
    let mut answer = vec![0; 64 * 1024];
    let read = stream.read(&mut answer).await.unwrap_or(0);
    String::from_utf8_lossy(&answer[..read]).into_owned()
}

/// A rightly signed request as it goes over the wire, with more headers and lines of one's own.
fn signed(rig: &Rig, extra: &str, body: &[u8]) -> Vec<u8> {
    let mut text = String::from("POST /v1/sandboxes HTTP/1.1\r\nhost: gateway\r\n");
    for (name, value) in rig.outer("POST", "/v1/sandboxes", body) {
        text += &format!("{name}: {value}\r\n");
    }
    text += extra;
    text += "\r\n";
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

async fn is_served(rig: &Rig, wire: &mut Wire) {
    assert_eq!(rig.get(wire, "/v1/info").await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_request_that_can_be_read_in_two_ways_is_refused() {
    let rig = Rig::start().await;
    let body = serde_json::to_vec(&rig.create_request()).unwrap();
    let length = body.len();
    for extra in [
        format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"),
        "transfer-encoding: chunked\r\n".into(),
        format!("content-length: {length}\r\ncontent-length: {length}\r\n"),
        format!("content-length: {length}\r\ncontent-length: 0\r\n"),
        format!("content-length: +{length}\r\n"),
        format!("content-length: {length}\r\ncontent-encoding: gzip\r\n"),
        format!("content-length: {length}\r\nconnection: upgrade\r\nupgrade: x\r\n"),
        format!("content-length: {length}\r\nx: a\r\n b\r\n"),
        format!("content-length: {length}\nx: a\r\n"),
    ] {
        let answer = say(&rig, &signed(&rig, &extra, &body)).await;
        let refused = answer.starts_with("HTTP/1.1 400") || answer.is_empty();
        assert!(refused, "{extra:?}: {answer}");
    }
    assert!(rig.runtime.list().await.unwrap().is_empty());
    // The control: the same bytes with one plain length.
    let plain = format!("content-length: {length}\r\n");
    let answer = say(&rig, &signed(&rig, &plain, &body)).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn what_is_too_large_is_refused_and_others_are_served() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let head = format!(
        "GET /healthz HTTP/1.1\r\nx: {}\r\n\r\n",
        "a".repeat(200_000)
    );
    let answer = say(&rig, head.as_bytes()).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    let line = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(200_000));
    let answer = say(&rig, line.as_bytes()).await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    let many: String = (0..500).map(|number| format!("x{number}: a\r\n")).collect();
    let answer = say(
        &rig,
        format!("GET /healthz HTTP/1.1\r\n{many}\r\n").as_bytes(),
    )
    .await;
    assert!(!answer.starts_with("HTTP/1.1 200"), "{answer}");
    let endless = "POST /v1/sandboxes HTTP/1.1\r\ncontent-length: 18446744073709551615\r\n\r\n";
    let answer = say(&rig, endless.as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 4"), "{answer}");
    let body = vec![b' '; 100_000];
    let refused = rig.ask(&mut wire, "POST", "/v1/sandboxes", &body).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    is_served(&rig, &mut rig.wire().await).await;
}

/// What no request could be made of is refused before the gateway sees it, as the reference says.
#[tokio::test]
async fn what_the_http_layer_refuses_has_neither_body_nor_gateway() {
    let rig = Rig::start().await;
    let long = "a".repeat(200_000);
    let many: String = (0..500).map(|number| format!("x{number}: a\r\n")).collect();
    for (bytes, status) in [
        ("no request\r\n\r\n".into(), "400"),
        (format!("GET /healthz HTTP/1.1\r\n{many}\r\n"), "431"),
        (format!("GET /healthz HTTP/1.1\r\nx: {long}\r\n\r\n"), "431"),
    ] {
        let answer = say(&rig, bytes.as_bytes()).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
        assert!(answer.ends_with("\r\n\r\n"), "{answer}");
        assert!(!answer.contains("x-glovebox-gateway"), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_thousand_idle_connections_and_slow_ones_keep_nobody_out() {
    // Both ends of each are in this process.
    let files = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: files.maximum,
        ..files
    };
    setrlimit(Resource::Nofile, raised).unwrap();
    let rig = Rig::start().await;
    let mut before = rig.wire().await;
    is_served(&rig, &mut before).await;
    let mut idle = Vec::new();
    for _ in 0..glovebox_testkit::count(1_000, 5_000) {
        idle.push(TcpStream::connect(rig.address).await.unwrap());
    }
    let mut slow = Vec::new();
    for _ in 0..20 {
        let mut stream = rig.tls().await;
        stream.write_all(b"GET /healthz HTT").await.unwrap();
        slow.push(stream);
    }
    // One who was there before, and one who comes now.
    is_served(&rig, &mut before).await;
    is_served(&rig, &mut rig.wire().await).await;
    assert!(rig.gateway.connections() <= 512);
}

#[tokio::test]
async fn a_body_that_breaks_off_has_no_effect() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let of = rig.make(&mut wire).await;
    let target = format!("/v1/sandboxes/{}/agent/v1/files/half", of.0);
    let body = vec![7; 300_000];
    let mut pairs = rig.outer("PUT", &target, &body);
    pairs.extend(rig.inner(&rig.key, of, ("PUT", "/v1/files/half"), &body));
    let mut text = format!(
        "PUT {target} HTTP/1.1\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in pairs {
        text += &format!("{name}: {value}\r\n");
    }
    let mut stream = rig.tls().await;
    stream.write_all((text + "\r\n").as_bytes()).await.unwrap();
    stream.write_all(&body[..200_000]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
    let stat = ("GET", "/v1/stat/half");
    assert_eq!(
        rig.ask_agent(&mut wire, of, stat, b"").await.code(),
        "not_found"
    );
}

/// Any bytes at all, and bytes that look like requests: nothing is made, and the next one is served.
#[tokio::test]
async fn no_bytes_bring_the_gateway_down() {
    let rig = Rig::start().await;
    let runner = proptest::test_runner::TestRng::deterministic_rng(
        proptest::test_runner::RngAlgorithm::ChaCha,
    );
    let config = proptest::test_runner::Config::default();
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(config, runner);
    let word = "[ -~]{0,40}|\\PC{0,8}|GET|/v1/sandboxes|HTTP/1\\.[01]|content-length: ?[0-9]{0,20}";
    let end = "\r\n|\n|\r| |:|\r\n\r\n|\u{0}";
    let requests = proptest::collection::vec((word, end), 0..40);
    for _ in 0..glovebox_testkit::count(300, 20_000) {
        let parts = requests.new_tree(&mut runner).unwrap().current();
        let bytes: String = parts.into_iter().map(|(word, end)| word + &end).collect();
        let mut stream = rig.tls().await;
        // A gateway that has heard enough closes while more is coming.
        let _ = stream.write_all(bytes.as_bytes()).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer);
        let is_healthz = bytes.contains("/healthz");
        assert!(
            is_healthz || !answer.contains("HTTP/1.1 2"),
            "{bytes:?}: {answer}"
        );
    }
    assert!(rig.runtime.list().await.unwrap().is_empty());
    is_served(&rig, &mut rig.wire().await).await;
}
