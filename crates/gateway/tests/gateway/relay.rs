//! What is passed on to agents, and what comes back.

use glovebox_protocol::health::{Health, Status};
use glovebox_protocol::ids::SandboxId;
use hyper::StatusCode;

use crate::rig::Rig;

#[tokio::test]
async fn an_agents_health_needs_only_the_gateways_signature() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let (id, epoch) = rig.make(&mut wire).await;
    let target = format!("/v1/sandboxes/{id}/agent/v1/health");
    let answer = rig.get(&mut wire, &target).await;
    let health: Health = answer.document();
    assert_eq!(health.epoch, epoch);
    assert_eq!(answer.header("x-glovebox-gateway"), None);
}

#[tokio::test]
async fn a_request_that_is_signed_twice_reaches_the_agent() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let of = rig.make(&mut wire).await;
    let status: Status = rig
        .ask_agent(&mut wire, of, ("GET", "/v1/status"), b"")
        .await
        .document();
    assert_eq!(status.sandbox_id, of.0);
    let name = "/v1/files/a%20b";
    let put = rig
        .ask_agent(&mut wire, of, ("PUT", name), b"content")
        .await;
    assert_eq!(put.status, StatusCode::OK);
    let got = rig.ask_agent(&mut wire, of, ("GET", name), b"").await;
    assert!(got.body.windows(7).any(|window| window == b"content"));
}

#[tokio::test]
async fn an_agents_refusal_is_passed_on_as_the_agents() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let (id, epoch) = rig.make(&mut wire).await;
    let target = format!("/v1/sandboxes/{id}/agent/v1/status");
    let refused = rig.get(&mut wire, &target).await;
    assert_eq!(
        (refused.status, &*refused.code()),
        (StatusCode::UNAUTHORIZED, "auth_missing")
    );
    assert_eq!(refused.header("x-glovebox-gateway"), None);
    assert_eq!(
        refused.header("x-glovebox-epoch"),
        Some(&*epoch.to_string())
    );
}

#[tokio::test]
async fn there_is_no_agent_of_a_sandbox_that_has_ended_or_never_was() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let of = rig.make(&mut wire).await;
    rig.runtime.stop(of.0).await.unwrap();
    let gone = rig
        .ask_agent(&mut wire, of, ("GET", "/v1/status"), b"")
        .await;
    assert_eq!(
        (gone.status, &*gone.code()),
        (StatusCode::GONE, "sandbox_gone")
    );
    assert_eq!(gone.error().details["reason"], "it was stopped");
    let nobody = (SandboxId::new(), of.1);
    let unknown = rig
        .ask_agent(&mut wire, nobody, ("GET", "/v1/status"), b"")
        .await;
    assert_eq!(unknown.code(), "not_found");
}
