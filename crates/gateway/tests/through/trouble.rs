//! An engine that is stopped or paused behind a gateway: it says so, goes on answering for itself,
//! and finds the engine again without a restart.

use std::sync::Arc;
use std::time::Duration;

use glovebox_client::{ClientError, Connector as _};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Runtime as _, RuntimeError};
use glovebox_runtime_engine::Options;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::engine::between::{Between, Mood};
use crate::stage::{Stage, docker};
use crate::{embedded, engine};

async fn healthz(stage: &Stage) -> String {
    let mut stream = stage.address.connect().await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

async fn create_says_that_the_engine_is_away(subject: &Subject) {
    let made = subject.runtime.create(subject.spec().validate().unwrap());
    let Err(RuntimeError::Unavailable { doing, fix, cause }) = made.await else {
        panic!("it was made");
    };
    let refused: &ClientError = cause.downcast_ref().unwrap();
    assert_eq!(refused.code(), Some(ErrorCode::RuntimeUnavailable));
    assert!(!doing.is_empty());
    assert!(fix.unwrap().contains("engine"));
}

async fn an_engine_goes_away_and_comes_back(mood: Mood, patience: Duration) {
    let between = Between::start();
    let key = Arc::new(SigningKey::generate().unwrap());
    let options = Options {
        socket: between.socket(),
        patience,
        ..engine::options()
    };
    let stage = Stage::over(docker(options).await, key.public()).await;
    let subject = Subject::new(
        Arc::clone(&stage.runtime) as _,
        stage.installation,
        embedded::PYTHON,
    )
    .through(stage.client.clone(), key);
    let guest = subject.create().await;
    guest.execute("kept = 5").await;

    between.set(mood).await;
    create_says_that_the_engine_is_away(&subject).await;
    assert!(healthz(&stage).await.starts_with("HTTP/1.1 200"));
    let info = stage.client.info().await.unwrap();
    assert_eq!(info.runtime, "docker");
    assert_eq!(info.capabilities, stage.runtime.describe().capabilities);

    between.set(Mood::Pass).await;
    subject.create().await.remove().await;
    assert_eq!(guest.execute("print(kept)").await.text(), "5\n");
    guest.remove().await;
    drop(subject);
    stage.finish().await;
}

#[tokio::test]
async fn a_stopped_engine_is_told_of_and_found_again() {
    an_engine_goes_away_and_comes_back(Mood::Cut, Duration::from_secs(60)).await;
}

#[tokio::test]
async fn a_paused_engine_is_told_of_and_found_again() {
    an_engine_goes_away_and_comes_back(Mood::Hold, Duration::from_secs(10)).await;
}
