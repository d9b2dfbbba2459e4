//! Answers of an agent that was taken over: whatever they are, the client neither panics nor
//! hangs nor keeps more than it has to.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::sync::Arc;
use std::time::Duration;

use glovebox_client::{AgentClient, ByteStream, ClientError, Execution, Identity};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::FileName;
use glovebox_protocol::frame::{FrameKind, encode};
use glovebox_protocol::ids::{ExecutionId, InstallationId, SandboxId};
use glovebox_protocol::process::StartProcess;
use glovebox_protocol::sign::{BodyDigest, Epoch, SigningKey};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

/// A client whose agent answers the first request as it should, and every other with `answer`.
fn client(answer: Vec<u8>) -> AgentClient {
    let identity = Identity {
        key: Arc::new(SigningKey::generate().unwrap()),
        installation: InstallationId::new(),
        sandbox: SandboxId::new(),
    };
    let answer = Arc::new(answer);
    AgentClient::new(identity, move || {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        tokio::spawn(serve(theirs, Arc::clone(&answer)));
        std::future::ready(Ok(Box::new(ours) as Box<dyn ByteStream>))
    })
}

async fn serve(mut stream: DuplexStream, answer: Arc<Vec<u8>>) {
    let mut request = Vec::new();
    loop {
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
                return;
            }
        }
        if request.starts_with(b"GET /v1/health ") {
            let health = format!(r#"{{"protocol":1,"epoch":"{}"}}"#, Epoch::random().unwrap());
            let _ = stream.write_all(&http("200 OK", health.as_bytes())).await;
        } else {
            let _ = stream.write_all(&answer).await;
            return;
        }
        request.clear();
    }
}

fn http(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn name() -> FileName {
    FileName::from_bytes(&b"f"[..]).unwrap()
}

async fn start(client: &AgentClient) -> Result<Execution, ClientError> {
    client
        .run(&StartProcess {
            execution: ExecutionId::new(),
            argv: vec!["x".into()],
            env: Default::default(),
            stdin: Default::default(),
            time_limit_ms: 1,
            output_limit_bytes: None,
        })
        .await
}

async fn to_end(client: &AgentClient) -> Result<Vec<EventBody>, ClientError> {
    let mut execution = start(client).await?;
    let mut events = Vec::new();
    while let Some(event) = execution.next().await? {
        events.push(event);
    }
    Ok(events)
}

async fn try_all(answer: &[u8]) {
    let limit = Duration::from_secs(10);
    let all = async {
        // Whether any of these works is not the matter here.
        let _ = client(answer.into()).status().await;
        let _ = client(answer.into()).list(None).await;
        let _ = client(answer.into()).kernel().await;
        let _ = client(answer.into()).sweep(&Default::default()).await;
        let _ = client(answer.into()).get_bytes(&name(), 1000).await;
        let _ = client(answer.into()).put_bytes(&name(), "x".into()).await;
        let digest = BodyDigest::of(b"x");
        let _ = client(answer.into())
            .put(&name(), &mut &b"x"[..], 1, digest)
            .await;
        let _ = to_end(&client(answer.into())).await;
    };
    tokio::time::timeout(limit, all).await.unwrap();
}

#[tokio::test]
async fn nonsense_is_an_error() {
    for answer in [
        &b""[..],
        b"\0",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n",
        b"HTTP/1.1 401 Unauthorized\r\nx-glovebox-epoch: \xff\r\ncontent-length: 0\r\n\r\n",
    ] {
        try_all(answer).await;
    }
    try_all(&http("500 No", "[".repeat(1 << 20).as_bytes())).await;
    try_all(&http(
        "200 OK",
        ("[".repeat(1 << 20) + &"]".repeat(1 << 20)).as_bytes(),
    ))
    .await;
    try_all(&http("200 OK", br#"{"entries":[{"name":"../../x","kind":"file","bytes":0,"modified_ms":0}],"truncated":false}"#)).await;
}

#[tokio::test]
async fn an_endless_document_is_cut_off() {
    let mut answer = b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n".to_vec();
    answer.extend_from_slice(&vec![b' '; 30_000_000]);
    let error = client(answer).status().await.unwrap_err();
    assert!(matches!(error, ClientError::TooLong { .. }), "{error}");
}

#[tokio::test]
async fn a_file_over_its_limit_is_cut_off() {
    let frames = encode(FrameKind::Data, &[0; 2000]).unwrap().repeat(3);
    let error = client(http("200 OK", &frames))
        .get_bytes(&name(), 3000)
        .await
        .unwrap_err();
    assert!(
        matches!(error, ClientError::TooLong { limit_bytes: 3000 }),
        "{error}"
    );
}

#[tokio::test]
async fn a_file_that_is_not_what_it_is_said_to_be_is_refused() {
    let claim = |name: &str, bytes: u64, of: &[u8]| {
        let document = format!(
            r#"{{"name":"{name}","bytes":{bytes},"sha256":"{}"}}"#,
            BodyDigest::of(of)
        );
        encode(FrameKind::Event, document.as_bytes()).unwrap()
    };
    let data = encode(FrameKind::Data, b"content").unwrap();
    for (wrong, end) in [
        ("hash", claim("f", 7, b"other")),
        ("length", claim("f", 8, b"content")),
        ("name", claim("g", 7, b"content")),
    ] {
        let answer = http("200 OK", &[&data[..], &end[..]].concat());
        let error = client(answer).get_bytes(&name(), 1000).await.unwrap_err();
        assert!(
            matches!(error, ClientError::Corrupt { .. }),
            "{wrong}: {error}"
        );
    }
    let right = http(
        "200 OK",
        &[&data[..], &claim("f", 7, b"content")[..]].concat(),
    );
    assert_eq!(
        client(right).get_bytes(&name(), 1000).await.unwrap(),
        b"content"
    );
    let cut = http("200 OK", &data);
    let error = client(cut).get_bytes(&name(), 1000).await.unwrap_err();
    assert!(matches!(error, ClientError::Cut), "{error}");
}

#[tokio::test]
async fn an_execution_ends_with_its_last_event_or_not_at_all() {
    let failed = br#"{"type":"failed","data":{"code":"internal","message":"x"}}"#;
    let last = encode(FrameKind::Event, failed).unwrap();
    let more = encode(FrameKind::Stdout, b"more").unwrap();
    let whole = to_end(&client(http("200 OK", &[&more[..], &last[..]].concat())))
        .await
        .unwrap();
    assert_eq!(whole.len(), 2);
    let cut = to_end(&client(http("200 OK", &more))).await.unwrap_err();
    assert!(matches!(cut, ClientError::Cut), "{cut}");
    for after in [&more[..], &more[..3]] {
        let answer = http("200 OK", &[&last[..], after].concat());
        let error = to_end(&client(answer)).await.unwrap_err();
        assert!(matches!(error, ClientError::OutOfPlace), "{error}");
    }
    let data = encode(FrameKind::Data, b"x").unwrap();
    let error = to_end(&client(http("200 OK", &data))).await.unwrap_err();
    assert!(matches!(error, ClientError::OutOfPlace), "{error}");
}

#[tokio::test]
async fn an_agent_that_always_has_another_epoch_is_not_asked_for_ever() {
    let epoch = Epoch::random().unwrap();
    let body = r#"{"code":"auth_rejected","message":"no"}"#;
    let answer = format!(
        "HTTP/1.1 401 Unauthorized\r\nx-glovebox-epoch: {epoch}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let asked = client(answer.into_bytes());
    let error = tokio::time::timeout(Duration::from_secs(5), asked.status())
        .await
        .unwrap();
    assert!(matches!(error, Err(ClientError::Refused(_))));
}

#[tokio::test]
async fn another_protocol_is_refused_by_number() {
    let identity = Identity {
        key: Arc::new(SigningKey::generate().unwrap()),
        installation: InstallationId::new(),
        sandbox: SandboxId::new(),
    };
    let client = AgentClient::new(identity, || {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        tokio::spawn(async move {
            let health = format!(r#"{{"protocol":7,"epoch":"{}"}}"#, Epoch::random().unwrap());
            theirs
                .read_buf(&mut Vec::with_capacity(1024))
                .await
                .unwrap();
            let _ = theirs.write_all(&http("200 OK", health.as_bytes())).await;
            let _ = theirs.read_to_end(&mut Vec::new()).await;
        });
        std::future::ready(Ok(Box::new(ours) as Box<dyn ByteStream>))
    });
    let error = client.status().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the agent speaks protocol 7; this program speaks 1"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_make_the_client_panic_or_hang(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        wrapped in any::<bool>(),
    ) {
        let answer = if wrapped { http("200 OK", &bytes) } else { bytes };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(try_all(&answer));
    }

    #[test]
    fn no_document_makes_the_client_panic_or_hang(document in "[\\[\\]{}\":,a-z0-9\\\\.-]{0,80}") {
        let frame = encode(FrameKind::Event, document.as_bytes()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(try_all(&http("200 OK", &frame)));
        runtime.block_on(try_all(&http("400 Bad", document.as_bytes())));
    }
}
