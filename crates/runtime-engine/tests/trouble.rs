//! What a driver does when the engine is away, or makes another container than it was asked for.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::gateway::CheckStatus;
use glovebox_runtime::conformance::Subject;
use glovebox_runtime::{Runtime as _, RuntimeError};
use glovebox_runtime_engine::{EngineRuntime, Options};

use support::between::{Between, Mood};

async fn start(
    between: &Between,
    patience: Duration,
) -> (Arc<EngineRuntime>, Subject, support::Cleaner) {
    let options = Options {
        socket: between.socket(),
        patience,
        ..support::options()
    };
    let installation = options.installation;
    let runtime = Arc::new(EngineRuntime::start(options).await.unwrap());
    let subject = Subject::new(Arc::clone(&runtime) as _, installation, support::PYTHON);
    (runtime, subject, support::Cleaner(installation))
}

fn is_unavailable<T: std::fmt::Debug>(result: Result<T, RuntimeError>) {
    match result {
        Err(RuntimeError::Unavailable { doing, fix, .. }) => {
            assert!(!doing.is_empty());
            assert!(fix.unwrap().contains("engine"));
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_engine_that_is_away_is_told_of_and_comes_back_without_a_restart() {
    let between = Between::start();
    let (runtime, subject, _cleaner) = start(&between, Duration::from_secs(60)).await;
    let guest = subject.create().await;
    guest.execute("kept = 5").await;
    between.set(Mood::Cut).await;
    is_unavailable(runtime.list().await);
    is_unavailable(runtime.inspect(guest.id).await);
    is_unavailable(runtime.create(subject.spec().validate().unwrap()).await);
    between.set(Mood::Pass).await;
    // The container went on, and so does what is in it.
    let client = subject.client(guest.id, Arc::clone(&subject.key));
    assert_eq!(client.status().await.unwrap().sandbox_id, guest.id);
    assert_eq!(guest.execute("print(kept)").await.text(), "5\n");
    assert_eq!(runtime.list().await.unwrap().len(), 1);
    subject.create().await.remove().await;
    guest.remove().await;
}

#[tokio::test]
async fn an_engine_that_does_not_answer_is_not_waited_for_for_ever() {
    let between = Between::start();
    let (runtime, subject, _cleaner) = start(&between, Duration::from_secs(10)).await;
    let guest = subject.create().await;
    between.set(Mood::Hold).await;
    is_unavailable(runtime.list().await);
    // The stream to the agent was open before, and is not the engine's API.
    assert_eq!(guest.execute("print(1)").await.text(), "1\n");
    between.set(Mood::Pass).await;
    assert_eq!(runtime.list().await.unwrap().len(), 1);
    guest.remove().await;
}

#[tokio::test]
async fn a_container_with_another_network_never_starts() {
    let between = Between::start();
    let (runtime, subject, cleaner) = start(&between, Duration::from_secs(60)).await;
    between.set(Mood::Sabotage).await;
    let refused = runtime.create(subject.spec().validate().unwrap()).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Unsupported { what, .. }) if what == "NetworkMode"),
        "{refused:?}"
    );
    between.set(Mood::Pass).await;
    assert!(support::containers(cleaner.0).is_empty());
    assert!(runtime.list().await.unwrap().is_empty());
    // The control: the same without sabotage.
    subject.create().await.remove().await;
}

#[tokio::test]
async fn the_engine_is_looked_at_and_images_are_told_apart() {
    let between = Between::start();
    let (runtime, subject, _cleaner) = start(&between, Duration::from_secs(60)).await;
    assert!(runtime.has_images());
    let names = [
        support::image(),
        "glovebox-base:bookworm".into(),
        "glovebox-no-such-image".into(),
    ];
    let examined = runtime.examine(&names).await.unwrap();
    let statuses: Vec<_> = examined
        .checks
        .iter()
        .filter(|check| check.id == "engine.image")
        .map(|check| check.status)
        .collect();
    assert_eq!(
        statuses,
        [CheckStatus::Pass, CheckStatus::Fail, CheckStatus::Fail]
    );
    let others = examined
        .checks
        .iter()
        .filter(|check| check.id != "engine.image");
    for check in others {
        assert_ne!(check.status, CheckStatus::Fail, "{check:?}");
    }
    let protocols: Vec<_> = examined.images.iter().map(|image| image.protocol).collect();
    assert_eq!(protocols, [Some(glovebox_protocol::PROTOCOL_VERSION), None]);
    // A sandbox may name its image; one that is not ours is refused before anything is made.
    let mut spec = subject.spec();
    spec.image = Some("glovebox-base:bookworm".into());
    let refused = runtime.create(spec.validate().unwrap()).await;
    assert!(
        matches!(&refused, Err(RuntimeError::Unsupported { what, .. }) if what == "image"),
        "{refused:?}"
    );
    let mut spec = subject.spec();
    spec.image = Some(support::image());
    subject.create_as(spec).await.remove().await;
    between.set(Mood::Cut).await;
    is_unavailable(runtime.examine(&names).await);
}

#[tokio::test]
async fn an_image_without_our_agent_is_refused_by_name() {
    let options = Options {
        image: "glovebox-base:bookworm".into(),
        ..support::options()
    };
    let refused = EngineRuntime::start(options).await;
    let Err(RuntimeError::Unsupported { what, cause, .. }) = &refused else {
        panic!("{refused:?}")
    };
    let cause = cause.as_ref().unwrap().to_string();
    assert_eq!(what, "image");
    assert!(
        cause.contains("holds agent none") && cause.contains(env!("CARGO_PKG_VERSION")),
        "{cause}"
    );
    let options = Options {
        image: "glovebox-no-such-image".into(),
        ..support::options()
    };
    let missing = EngineRuntime::start(options).await;
    assert!(
        matches!(&missing, Err(RuntimeError::Unavailable { doing, .. }) if doing.contains("no-such-image")),
        "{missing:?}"
    );
}
