//! How long sandboxes live and how many there may be, and what is there after a restart.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use glovebox_protocol::gateway::{SandboxList, SandboxState, SandboxView};
use glovebox_protocol::ids::SandboxId;
use glovebox_runtime::{
    AgentStream, Description, FakeRuntime, Fault, Reply, Runtime, RuntimeError, Sandbox,
    ValidatedSpec,
};
use hyper::StatusCode;

use crate::rig::{Rig, fake, now_ms};
use crate::wire::Wire;

/// A runtime that does not end in making, or is not there at all.
struct Difficult {
    inner: Arc<FakeRuntime>,
    hangs: AtomicBool,
    is_gone: AtomicBool,
    removed: AtomicUsize,
    connected: AtomicUsize,
}

impl Difficult {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: fake(),
            hangs: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            removed: AtomicUsize::new(0),
            connected: AtomicUsize::new(0),
        })
    }

    fn reached(&self) -> Result<(), RuntimeError> {
        if self.is_gone.load(Ordering::Relaxed) {
            Err(RuntimeError::Unavailable {
                doing: "asking the engine".into(),
                fix: None,
                cause: "it is not there".into(),
            })
        } else {
            Ok(())
        }
    }
}

impl Runtime for Difficult {
    fn describe(&self) -> Description {
        self.inner.describe()
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        Box::pin(async move {
            self.reached()?;
            let made = self.inner.create(spec).await;
            if self.hangs.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            made
        })
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        self.inner.inspect(id)
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        Box::pin(async move {
            self.reached()?;
            self.inner.list().await
        })
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        self.connected.fetch_add(1, Ordering::Relaxed);
        self.inner.connect(id)
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        self.inner.stop(id)
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        Box::pin(async move {
            self.reached()?;
            self.inner.remove(id).await?;
            self.removed.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
    }
}

async fn view(rig: &Rig, wire: &mut Wire, id: SandboxId) -> SandboxView {
    rig.get(wire, &format!("/v1/sandboxes/{id}"))
        .await
        .document()
}

/// Asks until a sandbox is in a state that is wanted.
async fn until(
    rig: &Rig,
    wire: &mut Wire,
    id: SandboxId,
    is_it: impl Fn(&SandboxState) -> bool,
) -> SandboxState {
    loop {
        let state = view(rig, wire, id).await.state;
        if is_it(&state) {
            return state;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn what_is_not_ready_in_time_is_taken_back() {
    let runtime = Difficult::new();
    let rig = Rig::over(runtime.clone(), |_| ()).await;
    let mut wire = rig.wire().await;
    runtime.hangs.store(true, Ordering::Relaxed);
    let mut asked = rig.create_request();
    asked.start_limit_ms = 50;
    let late = rig.create(&mut wire, &asked).await;
    assert_eq!(
        (late.status, &*late.code()),
        (StatusCode::GATEWAY_TIMEOUT, "start_timeout")
    );
    assert!(runtime.inner.list().await.unwrap().is_empty());
    assert_eq!(runtime.removed.load(Ordering::Relaxed), 1);
    // Nothing stands in the way of another attempt.
    runtime.hangs.store(false, Ordering::Relaxed);
    asked.start_limit_ms = 60_000;
    let made: SandboxView = rig.create(&mut wire, &asked).await.document();
    assert_eq!(made.state, SandboxState::Running);
}

#[tokio::test]
async fn one_that_is_being_made_can_be_asked_about_and_deleted() {
    let runtime = Difficult::new();
    let rig = Rig::over(runtime.clone(), |_| ()).await;
    let (mut wire, mut other) = (rig.wire().await, rig.wire().await);
    runtime.hangs.store(true, Ordering::Relaxed);
    let asked = rig.create_request();
    let delete = async {
        let target = format!("/v1/sandboxes/{}", asked.id);
        while rig.get(&mut other, &target).await.status != StatusCode::OK {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            view(&rig, &mut other, asked.id).await.state,
            SandboxState::Starting
        );
        let agent = format!("{target}/agent/v1/health");
        let early = rig.get(&mut other, &agent).await;
        assert_eq!(early.code(), "runtime_unavailable");
        assert_eq!(early.header("retry-after"), Some("1"));
        let ended: SandboxView = rig.ask(&mut other, "DELETE", &target, b"").await.document();
        assert!(matches!(ended.state, SandboxState::Ended { .. }));
    };
    let (answer, ()) = tokio::join!(rig.create(&mut wire, &asked), delete);
    assert_eq!(answer.code(), "sandbox_gone");
    assert!(runtime.inner.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_hard_limit_is_announced_and_then_kept() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let (id, _) = rig.make(&mut wire).await;
    assert_eq!(view(&rig, &mut wire, id).await.state, SandboxState::Running);
    rig.ahead_ms.store(3_570_000, Ordering::Relaxed);
    let mut rig = rig;
    // The client's clock goes with the gateway's.
    rig.signs_ahead_ms = 3_570_000;
    let SandboxState::Ending { left_ms } = view(&rig, &mut wire, id).await.state else {
        panic!("its end was not announced");
    };
    assert!(left_ms <= 30_000, "{left_ms}");
    rig.ahead_ms.store(3_610_000, Ordering::Relaxed);
    rig.signs_ahead_ms = 3_610_000;
    let ended = until(&rig, &mut wire, id, |state| {
        matches!(state, SandboxState::Ended { .. })
    });
    let SandboxState::Ended { reason, .. } = ended.await else {
        panic!("it has not ended");
    };
    assert_eq!(reason, "it reached its hard time limit");
    assert!(rig.runtime.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn budgets_are_kept_and_room_comes_back() {
    let rig = Rig::over(fake(), |rules| rules.max_sandboxes = 2).await;
    let mut wire = rig.wire().await;
    let (first, _) = rig.make(&mut wire).await;
    rig.make(&mut wire).await;
    let asked = rig.create_request();
    let full = rig.create(&mut wire, &asked).await;
    assert_eq!(
        (full.status, &*full.code()),
        (StatusCode::TOO_MANY_REQUESTS, "exhausted")
    );
    assert_eq!(full.error().details["budget"], "sandboxes");
    let target = format!("/v1/sandboxes/{first}");
    assert_eq!(
        rig.ask(&mut wire, "DELETE", &target, b"").await.status,
        StatusCode::OK
    );
    assert_eq!(rig.create(&mut wire, &asked).await.status, StatusCode::OK);

    let rig = Rig::over(fake(), |rules| rules.max_memory_bytes = 600 << 20).await;
    let mut wire = rig.wire().await;
    rig.make(&mut wire).await;
    rig.make(&mut wire).await;
    let full = rig.create(&mut wire, &rig.create_request()).await;
    assert_eq!(full.error().details["budget"], "memory");
}

#[tokio::test]
async fn a_runtime_without_room_and_one_that_is_gone_are_told_apart() {
    let runtime = Difficult::new();
    let rig = Rig::over(runtime.clone(), |_| ()).await;
    let mut wire = rig.wire().await;
    runtime.inner.fail_next(Fault::Exhausted);
    let full = rig.create(&mut wire, &rig.create_request()).await;
    assert_eq!(full.code(), "exhausted");
    runtime.is_gone.store(true, Ordering::Relaxed);
    let asked = rig.create_request();
    let gone = rig.create(&mut wire, &asked).await;
    assert_eq!(
        (gone.status, &*gone.code()),
        (StatusCode::SERVICE_UNAVAILABLE, "runtime_unavailable")
    );
    assert_eq!(gone.header("retry-after"), Some("1"));
    let preflight = rig.get(&mut wire, "/v1/preflight").await;
    assert!(String::from_utf8_lossy(&preflight.body).contains("it is not there"));
    // When it is back, nothing has to be restarted.
    runtime.is_gone.store(false, Ordering::Relaxed);
    assert_eq!(rig.create(&mut wire, &asked).await.status, StatusCode::OK);
}

#[tokio::test]
async fn the_next_life_of_a_gateway_takes_over_what_runs() {
    let runtime = fake();
    let first = Rig::over(runtime.clone(), |_| ()).await;
    let mut wire = first.wire().await;
    let asked = first.create_request();
    let made: SandboxView = first.create(&mut wire, &asked).await.document();
    let put = ("PUT", "/v1/files/a");
    let of = (made.id, made.agent_epoch.unwrap());
    assert_eq!(
        first.ask_agent(&mut wire, of, put, b"x").await.status,
        StatusCode::OK
    );
    let rules = first.rules.clone();
    let key = Arc::clone(&first.key);
    drop(first);

    let mut second = Rig::over(runtime, |new| *new = rules).await;
    second.key = key;
    let mut wire = second.wire().await;
    let list: SandboxList = second.get(&mut wire, "/v1/sandboxes").await.document();
    assert_eq!(list.items.len(), 1);
    assert_eq!(list.items[0].state, SandboxState::Running);
    assert_eq!(list.items[0].hard_deadline_ms, Some(asked.hard_deadline_ms));
    let stat = second
        .ask_agent(&mut wire, of, ("GET", "/v1/stat/a"), b"")
        .await;
    assert_eq!(stat.status, StatusCode::OK);
    // Whoever did not hear the answer to its create asks again.
    let again: SandboxView = second.create(&mut wire, &asked).await.document();
    assert_eq!(again.id, made.id);
}

#[tokio::test]
async fn what_ended_by_itself_is_told_and_what_nobody_knows_of_is_removed() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let (id, _) = rig.make(&mut wire).await;
    let orphan = {
        let mut request = rig.create_request();
        request.id = SandboxId::new();
        glovebox_runtime::SandboxSpec {
            id: request.id,
            installation: rig.rules.installation,
            keys: vec![rig.key.public()],
            image: None,
            limits: request.limits,
            input_limits: request.input_limits,
            trust_domain: request.trust_domain,
            start: request.start,
            idle_limit_ms: None,
            is_unclaimed: false,
            hard_deadline_ms: Some(now_ms() + 1_000_000),
        }
    };
    rig.runtime
        .create(orphan.validate().unwrap())
        .await
        .unwrap();
    rig.runtime.stop(id).await.unwrap();
    let ended = until(&rig, &mut wire, id, |state| {
        matches!(state, SandboxState::Ended { .. })
    });
    let SandboxState::Ended { reason, .. } = ended.await else {
        panic!("it has not ended");
    };
    assert_eq!(reason, "it was stopped");
    while !rig.runtime.list().await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
    let told = rig.told.lock().unwrap().clone();
    assert!(
        told.iter().any(|line| line["event"] == "sandbox_ended"),
        "{told:?}"
    );
}

#[tokio::test]
async fn requests_one_after_the_other_take_the_connection_that_the_create_left() {
    let runtime = Difficult::new();
    let rig = Rig::over(runtime.clone(), |_| ()).await;
    let mut wire = rig.wire().await;
    let of = rig.make(&mut wire).await;
    let before = runtime.connected.load(Ordering::Relaxed);
    let body = vec![1; 1_000_000];
    for _ in 0..5 {
        rig.ask_agent(&mut wire, of, ("PUT", "/v1/files/a"), &body)
            .await;
        rig.ask_agent(&mut wire, of, ("GET", "/v1/files/a"), b"")
            .await;
        rig.ask_agent(&mut wire, of, ("GET", "/v1/status"), b"")
            .await;
    }
    assert_eq!(runtime.connected.load(Ordering::Relaxed), before);
}

#[tokio::test]
async fn a_sandbox_made_in_advance_is_claimed_through_the_gateway_once() {
    let rig = Rig::start().await;
    let mut wire = rig.wire().await;
    let mut asked = rig.create_request();
    asked.is_unclaimed = true;
    let made: SandboxView = rig.create(&mut wire, &asked).await.document();
    let of = (made.id, made.agent_epoch.unwrap());
    let early = rig
        .ask_agent(&mut wire, of, ("PUT", "/v1/files/a"), b"x")
        .await;
    assert_eq!(early.code(), "unclaimed");
    let target = format!("/v1/sandboxes/{}/claim", of.0);
    let mut claim = async |claimant: &str| {
        let body = serde_json::json!({ "claimant": claimant }).to_string();
        let body = body.as_bytes();
        let mut pairs = rig.outer("POST", &target, body);
        pairs.extend(rig.inner(&rig.key, of, ("POST", "/v1/claim"), body));
        wire.send("POST", &target, &pairs, body).await.unwrap()
    };
    assert_eq!(claim("one").await.status, StatusCode::OK);
    let second = claim("two").await;
    assert_eq!(
        (second.status, &*second.code()),
        (StatusCode::CONFLICT, "conflict")
    );
    assert_eq!(second.error().details["claimant"], "one");
    let put = rig
        .ask_agent(&mut wire, of, ("PUT", "/v1/files/a"), b"x")
        .await;
    assert_eq!(put.status, StatusCode::OK);
}
