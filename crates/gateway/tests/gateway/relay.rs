//! What is passed on to agents, and what comes back.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use glovebox_protocol::health::{Health, Status};
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::Epoch;
use glovebox_runtime::{
    AgentStream, Description, FakeRuntime, Reply, Runtime, Sandbox, ValidatedSpec,
};
use hyper::StatusCode;
use tokio::io::DuplexStream;
use tokio::time::Instant;

use crate::rig::{Rig, fake};

/// A runtime whose agents take everything and say nothing.
struct Silent {
    inner: Arc<FakeRuntime>,
    ends: Mutex<Vec<DuplexStream>>,
}

impl Runtime for Silent {
    fn describe(&self) -> Description {
        self.inner.describe()
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        Box::pin(async move {
            let mut made = self.inner.create(spec).await?;
            made.agent_epoch = Some(Epoch::random().unwrap());
            Ok(made)
        })
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        self.inner.inspect(id)
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        self.inner.list()
    }

    fn connect(&self, _: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        self.ends.lock().unwrap().push(theirs);
        Box::pin(async { Ok(Box::new(ours) as Box<dyn AgentStream>) })
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        self.inner.stop(id)
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        self.inner.remove(id)
    }
}

#[tokio::test]
async fn an_agent_that_never_begins_an_answer_is_given_up() {
    let silent = Arc::new(Silent {
        inner: fake(),
        ends: Mutex::default(),
    });
    let rig = Rig::over(silent.clone(), |_| ()).await;
    let mut wire = rig.wire().await;
    let of = rig.make(&mut wire).await;
    // From here on time passes as fast as everybody waits.
    tokio::time::pause();
    let began = Instant::now();
    let refused = rig
        .ask_agent(&mut wire, of, ("PUT", "/v1/files/a"), b"content")
        .await;
    assert_eq!(
        (refused.status, &*refused.code()),
        (StatusCode::SERVICE_UNAVAILABLE, "runtime_unavailable")
    );
    assert!(refused.header("x-glovebox-gateway").is_some());
    let waited = began.elapsed();
    assert!(waited >= Duration::from_secs(600), "{waited:?}");
    assert_eq!(silent.ends.lock().unwrap().len(), 1);
}

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
