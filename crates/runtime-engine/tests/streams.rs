//! What an agent makes of whatever comes over its standard streams: a real one, in a real
//! container, spoken to without the driver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::record::{FromAgentDecoder, Kind, MAX_PAYLOAD, Magic, Nonce, encode, hello};
use glovebox_runtime::Runtime as _;
use glovebox_runtime::conformance::Subject;
use glovebox_runtime_engine::EngineRuntime;
use glovebox_testkit::count;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Joined to a container's standard streams, as any program could be that may ask the engine.
struct Raw {
    engine: UnixStream,
    /// Bytes of the engine's frames that were not looked at yet.
    framed: Vec<u8>,
}

impl Raw {
    async fn attach(container: &str) -> Self {
        let mut engine = UnixStream::connect(support::SOCKET).await.unwrap();
        let request = format!(
            "POST /containers/{container}/attach?stream=1&stdin=1&stdout=1&detachKeys= HTTP/1.1\r\n\
             Host: docker\r\nConnection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n"
        );
        engine.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(engine.read_u8().await.unwrap());
        }
        assert!(
            head.starts_with(b"HTTP/1.1 101"),
            "{}",
            String::from_utf8_lossy(&head)
        );
        Self {
            engine,
            framed: Vec::new(),
        }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.engine.write_all(bytes).await.unwrap();
    }

    /// The next bytes of the agent's output.
    async fn output(&mut self) -> Vec<u8> {
        loop {
            if let Some(header) = self.framed.first_chunk::<8>() {
                let [.., a, b, c, d] = *header;
                let end = 8 + u32::from_be_bytes([a, b, c, d]) as usize;
                if self.framed.len() >= end {
                    let payload = self.framed[8..end].to_vec();
                    self.framed.drain(..end);
                    return payload;
                }
            }
            let read = self.engine.read_buf(&mut self.framed).await.unwrap();
            assert!(read > 0, "the engine has closed the streams");
        }
    }

    /// Says hello until it is acknowledged, as a client has to.
    async fn begin(&mut self, magic: Magic, nonce: Nonce) -> FromAgentDecoder {
        let mut decoder = FromAgentDecoder::new(nonce);
        while !decoder.begin() {
            self.send(&hello(&magic, &nonce)).await;
            let patience = Duration::from_secs(1);
            if let Ok(bytes) = tokio::time::timeout(patience, self.output()).await {
                decoder.push(&bytes);
            }
        }
        decoder
    }

    /// The next word about the session; what its multiplexer says is passed over.
    async fn next(&mut self, decoder: &mut FromAgentDecoder) -> (Kind, Vec<u8>) {
        loop {
            match decoder.take().unwrap() {
                Some((Kind::Data, _)) => {}
                Some(record) => return record,
                None => {
                    let bytes = self.output().await;
                    decoder.push(&bytes);
                }
            }
        }
    }
}

fn magic_of(container: &str) -> Magic {
    let format = "{{index .Config.Labels \"glovebox.channel\"}}";
    Magic::from_hex(support::docker(&["inspect", "--format", format, container]).trim()).unwrap()
}

/// A sandbox whose driver has let go of it.
async fn sandbox(installation: InstallationId) -> (String, Subject) {
    let runtime = EngineRuntime::start(support::options_of(installation))
        .await
        .unwrap();
    let runtime = Arc::new(runtime);
    let subject = Subject::new(Arc::clone(&runtime) as _, installation, support::PYTHON);
    let id = subject.create().await.id;
    runtime.detach();
    (format!("glovebox-{id}"), subject)
}

/// Records, beginnings of records, hellos with and without the right words, and anything else.
fn rubbish() -> impl Strategy<Value = Vec<u8>> {
    let any_bytes = prop::collection::vec(any::<u8>(), 0..2000);
    let record = (
        any::<[u8; 32]>(),
        prop::collection::vec(any::<u8>(), 0..300),
        0..400_usize,
    );
    let record = record.prop_map(|(nonce, payload, cut)| {
        let mut bytes = encode(Nonce(nonce).tag(), Kind::Data, &payload).unwrap();
        bytes.truncate(cut);
        bytes
    });
    let first = any::<[u8; 32]>().prop_map(|nonce| hello(&Magic::FIRST, &Nonce(nonce)).to_vec());
    prop_oneof![any_bytes, record, first]
}

#[tokio::test]
async fn a_session_begins_behind_any_rubbish_and_only_with_the_magic_of_the_sandbox() {
    let installation = InstallationId::new();
    let _cleaner = support::Cleaner(installation);
    let (container, subject) = sandbox(installation).await;
    let magic = magic_of(&container);
    let mut raw = Raw::attach(&container).await;
    let mut runner = TestRunner::deterministic();
    for round in 0..count(200, 20_000) {
        let rubbish = rubbish().new_tree(&mut runner).unwrap().current();
        raw.send(&rubbish).await;
        if round % 10 == 9 {
            raw = Raw::attach(&container).await;
        }
        let mut nonce = [7; 32];
        nonce[..8].copy_from_slice(&(round as u64).to_be_bytes());
        let nonce = Nonce(nonce);
        let mut decoder = raw.begin(magic, nonce).await;
        // In the session too: what is no record of it ends it, and the agent says so.
        let other = Nonce([0xa5; 32]);
        raw.send(
            &encode(
                other.tag(),
                Kind::Data,
                &rubbish[..rubbish.len().min(MAX_PAYLOAD)],
            )
            .unwrap(),
        )
        .await;
        assert_eq!(raw.next(&mut decoder).await.0, Kind::Desync);
    }
    // Whoever knows only what everybody knows is not answered, however often they ask.
    let strange = Nonce([9; 32]);
    let mut decoder = FromAgentDecoder::new(strange);
    raw.send(&hello(&Magic::FIRST, &strange).repeat(100)).await;
    let ours = Nonce([10; 32]);
    let mut after = FromAgentDecoder::new(ours);
    raw.send(&hello(&magic, &ours)).await;
    while !after.begin() {
        let bytes = raw.output().await;
        decoder.push(&bytes);
        after.push(&bytes);
    }
    assert!(!decoder.begin());
    drop(raw);
    // And the agent is what it was.
    drop(subject);
    let runtime = EngineRuntime::start(support::options_of(installation))
        .await
        .unwrap();
    let id = runtime.list().await.unwrap()[0].id;
    runtime.remove(id).await.unwrap();
}

#[tokio::test]
async fn a_silent_gateway_is_given_up_and_a_new_one_taken() {
    let installation = InstallationId::new();
    let _cleaner = support::Cleaner(installation);
    let (container, _subject) = sandbox(installation).await;
    let magic = magic_of(&container);
    let mut raw = Raw::attach(&container).await;
    let mut decoder = raw.begin(magic, Nonce([1; 32])).await;
    assert_eq!(raw.next(&mut decoder).await.0, Kind::Desync);
    let mut decoder = raw.begin(magic, Nonce([2; 32])).await;
    raw.send(&encode(Nonce([2; 32]).tag(), Kind::Alive, &[]).unwrap())
        .await;
    raw.send(&encode(Nonce([2; 32]).tag(), Kind::Config, b"{}").unwrap())
        .await;
    // It has its configuration, once and for all.
    assert_eq!(raw.next(&mut decoder).await.0, Kind::Desync);
}
