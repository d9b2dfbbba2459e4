//! Requests about one sandbox that overtake each other.

use glovebox_protocol::gateway::{SandboxList, SandboxState};
use hyper::StatusCode;

use crate::rig::Rig;

#[tokio::test]
async fn a_create_that_its_delete_has_overtaken_makes_nothing() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let asked = rig.create_request();
    let target = format!("/v1/sandboxes/{}", asked.id);
    // As often as somebody likes, with the same answer.
    for _ in 0..2 {
        let deleted = rig.ask(&mut wire, "DELETE", &target, b"").await;
        assert_eq!(
            (deleted.status, &*deleted.code()),
            (StatusCode::NOT_FOUND, "not_found")
        );
    }
    let late = rig.create(&mut wire, &asked).await;
    assert_eq!(
        (late.status, &*late.code()),
        (StatusCode::GONE, "sandbox_gone")
    );
    let reason = late.error().details["reason"].clone();
    assert_eq!(reason, "it was deleted before it was made");
    assert!(rig.runtime.list().await.unwrap().is_empty());
    // The control: of another id there is one.
    rig.make(&mut wire).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_create_and_a_delete_that_race_nothing_is_left() {
    let rig = Rig::start().await;
    let (mut one, mut other) = (rig.wire().await, rig.wire().await);
    let (mut made, mut refused) = (0, 0);
    for number in 0..glovebox_testkit::count(200, 5_000) {
        let asked = rig.create_request();
        let target = format!("/v1/sandboxes/{}", asked.id);
        let creating = rig.create(&mut one, &asked);
        let deleting = async {
            // Earlier and later ones, so that they meet in every phase of making.
            for _ in 0..number % 50 {
                tokio::task::yield_now().await;
            }
            rig.ask(&mut other, "DELETE", &target, b"").await
        };
        let (created, deleted) = tokio::join!(creating, deleting);
        match created.status {
            StatusCode::OK => made += 1,
            _ => {
                assert_eq!(created.code(), "sandbox_gone");
                refused += 1;
            }
        }
        assert!(matches!(
            deleted.status,
            StatusCode::OK | StatusCode::NOT_FOUND
        ));
        assert!(rig.runtime.list().await.unwrap().is_empty(), "{number}");
        let list: SandboxList = rig.get(&mut one, "/v1/sandboxes").await.document();
        let is_alive = |state: &SandboxState| !matches!(state, SandboxState::Ended { .. });
        assert!(
            !list.items.iter().any(|view| is_alive(&view.state)),
            "{number}"
        );
    }
    assert!(made + refused > 0);
}
