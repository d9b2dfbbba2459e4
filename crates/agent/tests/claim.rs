//! A box that was made in advance: nobody's until the launcher says whose, and then for good.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use glovebox_client::{AgentClient, Identity, UnixConnector};
use glovebox_protocol::agent_config::{Claim, Start};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::launcher_line::{FromAgent, ToAgent};
use glovebox_protocol::limits::InputLimits;
use glovebox_protocol::sign::SigningKey;
use support::launcher::{TestLauncher, agent_with_launcher};
use support::{TestAgent, eval, name, results};

/// An agent that is nobody's.
async fn unclaimed() -> (TestAgent, TestLauncher) {
    agent_with_launcher(|config| config.claim = None).await
}

fn claim(identity: &Identity) -> ToAgent {
    let claim = Claim {
        sandbox: identity.sandbox,
        installation: identity.installation,
        keys: vec![identity.key.public()],
        input_limits: InputLimits {
            file_bytes: 4,
            total_bytes: 8,
        },
        idle_limit_ms: None,
        is_unclaimed: false,
    };
    ToAgent::Claim { claim }
}

#[tokio::test]
async fn a_claim_with_a_kernel_in_it_is_all_that_is_between_a_ready_box_and_a_result() {
    let (test, launcher) = unclaimed().await;
    launcher.give_kernel();
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    let epoch = test.client.health().await.unwrap().epoch;
    launcher.send(&claim(&test.identity), None);
    assert_eq!(results(&eval(&test.client, "6 * 7").await), ["42"]);
    assert_eq!(test.client.health().await.unwrap().epoch, epoch);
    let status = test.client.status().await.unwrap();
    assert_eq!(status.sandbox_id, test.identity.sandbox);
    // Its limits came with it.
    let file = name("a");
    let put = |bytes: &'static str| test.client.put_bytes(&file, bytes.into());
    put("1234").await.unwrap();
    let error = put("12345").await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::InputLimit));
}

/// Every request that is sent after the claim was sent is answered, whichever the event loop
/// hears of first.
#[tokio::test]
async fn a_request_right_behind_the_claim_never_comes_too_early() {
    for _ in 0..50 {
        let (test, launcher) = unclaimed().await;
        let epoch = test.client.health().await.unwrap().epoch;
        assert_eq!(test.client.health().await.unwrap().epoch, epoch);
        launcher.send(&claim(&test.identity), None);
        test.client.status().await.unwrap();
    }
}

#[tokio::test]
async fn requests_wait_for_the_claim() {
    let (test, launcher) = unclaimed().await;
    test.client.health().await.unwrap();
    let waiting = tokio::join!(test.client.status(), test.client.kernel(), async {
        // Both have been sent when a third one is answered that needs no claim.
        test.client.health().await.unwrap();
        launcher.send(&claim(&test.identity), None);
    });
    waiting.0.unwrap();
    waiting.1.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_box_that_nobody_claims_says_so_after_a_while_and_can_still_be_claimed() {
    let (test, launcher) = unclaimed().await;
    let began = tokio::time::Instant::now();
    let error = test.client.status().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Unclaimed));
    assert_eq!(began.elapsed().as_secs(), Duration::from_secs(5).as_secs());
    launcher.send(&claim(&test.identity), None);
    test.client.status().await.unwrap();
}

#[tokio::test]
async fn a_second_claim_has_no_effect() {
    let (test, launcher) = unclaimed().await;
    launcher.send(&claim(&test.identity), None);
    test.client.status().await.unwrap();
    let other = Identity {
        key: Arc::new(SigningKey::generate().unwrap()),
        installation: InstallationId::new(),
        sandbox: SandboxId::new(),
    };
    launcher.send(&claim(&other), None);
    let thief = AgentClient::new(other, UnixConnector(test.socket.clone()));
    let error = thief.status().await.unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AuthRejected));
    assert_eq!(
        test.client.status().await.unwrap().sandbox_id,
        test.identity.sandbox
    );
    let words = launcher.words();
    assert!(words[0].contains("claimed already"), "{words:?}");
}

#[tokio::test]
async fn a_box_that_was_somebodys_from_the_start_cannot_be_claimed() {
    let (test, launcher) = agent_with_launcher(|_| {}).await;
    launcher.send(&claim(&test.identity), None);
    // A packet behind it shows that it was taken.
    launcher.give_kernel();
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    test.client.status().await.unwrap();
    let words = launcher.words();
    assert!(words[0].contains("claimed already"), "{words:?}");
    test.client
        .put_bytes(&name("a"), "longer than the second claim allows".into())
        .await
        .unwrap();
}

#[tokio::test]
async fn a_kernel_can_be_had_in_advance_without_a_template() {
    let (test, launcher) = agent_with_launcher(|config| {
        config.claim = None;
        config.start = Start::Fresh;
    })
    .await;
    launcher.send(&ToAgent::PrepareKernel, None);
    assert!(matches!(
        launcher.hear().await,
        FromAgent::KernelReady { .. }
    ));
    launcher.send(&claim(&test.identity), None);
    let info = test.client.kernel().await.unwrap();
    assert_eq!((info.generation, info.start), (1, Some(Start::Fresh)));
    assert_eq!(results(&eval(&test.client, "1").await), ["1"]);
    assert_eq!(test.client.kernel().await.unwrap().generation, 1);
}

#[tokio::test]
async fn what_is_no_packet_is_passed_over() {
    let (test, launcher) = unclaimed().await;
    launcher.send_bytes(b"{\"is\":\"open_sesame\"}");
    launcher.send_bytes(&[0xff; 60_000]);
    launcher.send(&claim(&test.identity), None);
    test.client.status().await.unwrap();
    assert_eq!(launcher.words().len(), 2);
}

/// An agent that has its keys and waits for a claim by one of them.
async fn made_in_advance() -> TestAgent {
    let change = |config: &mut glovebox_protocol::agent_config::AgentConfig| {
        config.claim.as_mut().unwrap().is_unclaimed = true;
    };
    TestAgent::start_with(change, std::collections::BTreeMap::new()).await
}

async fn claim_as(test: &TestAgent, claimant: &str) -> (u16, String) {
    let body = serde_json::json!({ "claimant": claimant }).to_string();
    support::signed(test, ("POST", "/v1/claim"), body.as_bytes()).await
}

#[tokio::test]
async fn a_sandbox_made_in_advance_obeys_nothing_but_its_claim() {
    let test = made_in_advance().await;
    let status = test.client.status().await.unwrap();
    assert!(status.is_unclaimed);
    let refused = test.client.kernel().await.unwrap_err();
    assert_eq!(refused.code(), Some(ErrorCode::Unclaimed));
    let refused = test.client.put_bytes(&name("a"), "x".into()).await;
    assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::Unclaimed));

    let (status, _) = claim_as(&test, "").await;
    assert_eq!(status, 400);
    let (status, text) = claim_as(&test, "thread 7").await;
    assert_eq!(status, 200, "{text}");
    test.client.kernel().await.unwrap();
    let (status, text) = claim_as(&test, "thread 8").await;
    assert_eq!(status, 409, "{text}");
    assert!(text.contains("thread 7"), "{text}");
    let status = test.client.status().await.unwrap();
    assert!(!status.is_unclaimed);
    assert_eq!(status.claimant.as_deref(), Some("thread 7"));
}

#[tokio::test]
async fn a_sandbox_made_for_use_cannot_be_claimed() {
    let test = TestAgent::start().await;
    let (status, text) = claim_as(&test, "thread 7").await;
    assert_eq!(status, 409, "{text}");
}
