//! Sandboxes that are made before anybody asks for them: they are what others are, sooner.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod support;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use glovebox_protocol::event::EventBody;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::kernel::KernelState;
use glovebox_runtime::conformance::{Guest, Subject};
use glovebox_runtime::{AgentStream, Description, Reply, Runtime, Sandbox, Start, ValidatedSpec};
use glovebox_runtime_embedded::{EmbeddedRuntime, Pool, ReadyKind};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a machine may take to have them.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the runtime says of the sandboxes of a kind, once that is what is waited for.
async fn pool_once(
    runtime: &EmbeddedRuntime,
    kind: &ReadyKind,
    is_so: impl Fn(&Pool) -> bool,
) -> Pool {
    let asking = async {
        let mut look = tokio::time::interval(Duration::from_millis(20));
        loop {
            look.tick().await;
            let measured = runtime.measure().await.unwrap();
            if let Some(pool) = measured.pool(kind)
                && is_so(pool)
            {
                return pool.clone();
            }
        }
    };
    tokio::time::timeout(PATIENCE, asking)
        .await
        .expect("what is waited for of the ready sandboxes does not come")
}

/// Keeps so many ready, and waits until they are.
async fn keep_ready(runtime: &EmbeddedRuntime, kind: &ReadyKind, count: u32) {
    runtime.keep_ready(kind.clone(), count).await.unwrap();
    pool_once(runtime, kind, |pool| pool.ready == count).await;
}

/// A runtime and what the checks need to use it.
struct Stage {
    subject: Subject,
    runtime: Arc<EmbeddedRuntime>,
    kind: ReadyKind,
}

impl Stage {
    async fn start(start: Start) -> Self {
        let options = support::options();
        let installation = options.installation;
        let runtime = Arc::new(EmbeddedRuntime::start(options).await.unwrap());
        let driven: Arc<dyn Runtime> = Arc::<EmbeddedRuntime>::clone(&runtime);
        let subject = Subject::new(driven, installation, support::PYTHON).starting(start);
        let kind = ReadyKind::of(&subject.spec());
        Self {
            subject,
            runtime,
            kind,
        }
    }

    async fn finish(self) {
        self.subject.finish().await;
        let runtime = Arc::into_inner(self.runtime).unwrap();
        runtime.shut_down().await.unwrap();
    }
}

/// A subject whose sandboxes are ready before they are asked for.
async fn subject() -> Subject {
    let Stage {
        subject,
        runtime,
        kind,
    } = Stage::start(Start::Template).await;
    keep_ready(&runtime, &kind, 1).await;
    subject.finished_by(async move || {
        let runtime = Arc::into_inner(runtime).unwrap();
        runtime.shut_down().await.unwrap();
    })
}

glovebox_runtime::conformance_tests!(crate::subject());

async fn answers(guest: &Guest) {
    let ran = guest.execute("print(6 * 7)").await;
    assert_eq!(ran.text(), "42\n");
}

/// The kernel of a sandbox that was ready is its first one, and nobody has used it.
async fn is_given_away(start: Start) {
    let stage = Stage::start(start).await;
    keep_ready(&stage.runtime, &stage.kind, 1).await;
    // Until somebody asks for it, it is nobody's.
    assert!(stage.runtime.list().await.unwrap().is_empty());
    let guest = stage.subject.create().await;
    let kernel = guest.client.kernel().await.unwrap();
    assert_eq!(
        (kernel.state, kernel.generation, kernel.start),
        (KernelState::Idle, 1, Some(start))
    );
    let ran = guest.execute("In, Out").await;
    let Some(EventBody::Result {
        execution_count,
        shown,
    }) = ran.events.last()
    else {
        panic!("no result: {ran:?}");
    };
    assert_eq!(*execution_count, 1);
    assert_eq!(shown.data["text/plain"], "(['', 'In, Out'], {})");
    let pool = pool_once(&stage.runtime, &stage.kind, |pool| pool.ready == 1).await;
    assert_eq!((pool.wanted, pool.hits, pool.misses), (1, 1, 0));
    guest.remove().await;
    stage.finish().await;
}

#[tokio::test]
async fn a_ready_sandbox_with_a_copied_kernel_is_given_away_unused() {
    is_given_away(Start::Template).await;
}

#[tokio::test]
async fn a_ready_sandbox_with_a_fresh_kernel_is_given_away_unused() {
    is_given_away(Start::Fresh).await;
}

#[tokio::test]
async fn another_kind_of_sandbox_is_made() {
    let stage = Stage::start(Start::Template).await;
    keep_ready(&stage.runtime, &stage.kind, 1).await;
    let mut limits = stage.subject.spec();
    limits.limits.processes -= 1;
    let mut domain = stage.subject.spec();
    domain.trust_domain = "somebody else".into();
    for spec in [limits, domain] {
        let guest = stage.subject.create_as(spec).await;
        answers(&guest).await;
        guest.remove().await;
    }
    let pool = pool_once(&stage.runtime, &stage.kind, |pool| pool.ready == 1).await;
    assert_eq!((pool.hits, pool.misses), (0, 0));
    stage.finish().await;
}

#[tokio::test]
async fn each_ready_sandbox_is_given_away_once() {
    const READY: u32 = 10;
    const ASKED: usize = 50;
    let stage = Stage::start(Start::Template).await;
    keep_ready(&stage.runtime, &stage.kind, READY).await;
    let specs: Vec<_> = (0..ASKED).map(|_| stage.subject.spec()).collect();
    let mut asking = tokio::task::JoinSet::new();
    for spec in &specs {
        let (runtime, spec) = (Arc::clone(&stage.runtime), spec.clone());
        asking.spawn(async move { runtime.create(spec.validate().unwrap()).await });
    }
    while let Some(made) = asking.join_next().await {
        made.unwrap().unwrap();
    }
    // Every agent has an epoch of its own: whoever has the same sandbox has the same one.
    let mut epochs = BTreeSet::new();
    for spec in &specs {
        let client = stage
            .subject
            .client(spec.id, Arc::clone(&stage.subject.key));
        let status = client.status().await.unwrap();
        assert_eq!(status.sandbox_id, spec.id);
        let epoch = client.health().await.unwrap().epoch;
        assert!(epochs.insert(epoch.to_string()), "{} twice", spec.id);
    }
    assert_eq!(stage.runtime.list().await.unwrap().len(), ASKED);
    let pool = pool_once(&stage.runtime, &stage.kind, |_| true).await;
    assert!(pool.hits >= u64::from(READY), "{pool:?}");
    assert_eq!(pool.hits + pool.misses, ASKED as u64, "{pool:?}");
    for spec in specs {
        stage.runtime.remove(spec.id).await.unwrap();
    }
    stage.finish().await;
}

#[tokio::test]
async fn ready_sandboxes_are_ended_when_none_are_wanted() {
    let stage = Stage::start(Start::Template).await;
    keep_ready(&stage.runtime, &stage.kind, 2).await;
    stage
        .runtime
        .keep_ready(stage.kind.clone(), 0)
        .await
        .unwrap();
    let asking = async {
        loop {
            let measured = stage.runtime.measure().await.unwrap();
            if measured
                .pool(&stage.kind)
                .is_none_or(|pool| pool.ready == 0)
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), asking)
        .await
        .expect("sandboxes that nobody wants stay");
    // One that is asked for is made then, as ever.
    let guest = stage.subject.create().await;
    answers(&guest).await;
    guest.remove().await;
    stage.finish().await;
}

/// A stream that counts how often its reader begins to speak.
struct Counted<S> {
    stream: S,
    is_speaking: bool,
    exchanges: Arc<AtomicUsize>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.is_speaking = false;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        if !std::mem::replace(&mut self.is_speaking, true) {
            self.exchanges.fetch_add(1, Ordering::SeqCst);
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// A runtime that counts what is opened to agents, and what is said over it.
struct Counting {
    runtime: Arc<EmbeddedRuntime>,
    connections: AtomicUsize,
    exchanges: Arc<AtomicUsize>,
}

impl Counting {
    fn seen(&self) -> (usize, usize) {
        let count = |number: &AtomicUsize| number.load(Ordering::SeqCst);
        (count(&self.connections), count(&self.exchanges))
    }
}

impl Runtime for Counting {
    fn describe(&self) -> Description {
        self.runtime.describe()
    }

    fn create(&self, spec: ValidatedSpec) -> Reply<'_, Sandbox> {
        self.runtime.create(spec)
    }

    fn inspect(&self, id: SandboxId) -> Reply<'_, Sandbox> {
        self.runtime.inspect(id)
    }

    fn list(&self) -> Reply<'_, Vec<Sandbox>> {
        self.runtime.list()
    }

    fn connect(&self, id: SandboxId) -> Reply<'_, Box<dyn AgentStream>> {
        self.connections.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            let stream = self.runtime.connect(id).await?;
            let exchanges = Arc::clone(&self.exchanges);
            let counted = Counted {
                stream,
                is_speaking: false,
                exchanges,
            };
            Ok(Box::new(counted) as Box<dyn AgentStream>)
        })
    }

    fn stop(&self, id: SandboxId) -> Reply<'_, ()> {
        self.runtime.stop(id)
    }

    fn remove(&self, id: SandboxId) -> Reply<'_, ()> {
        self.runtime.remove(id)
    }
}

#[tokio::test]
async fn the_first_result_of_a_ready_sandbox_takes_two_exchanges_over_one_connection() {
    let options = support::options();
    let installation = options.installation;
    let counting = Arc::new(Counting {
        runtime: Arc::new(EmbeddedRuntime::start(options).await.unwrap()),
        connections: AtomicUsize::default(),
        exchanges: Arc::default(),
    });
    let driven: Arc<dyn Runtime> = Arc::<Counting>::clone(&counting);
    let subject = Subject::new(driven, installation, support::PYTHON).starting(Start::Template);
    keep_ready(&counting.runtime, &ReadyKind::of(&subject.spec()), 1).await;
    let guest = subject.create().await;
    assert_eq!(counting.seen(), (0, 0));
    // It asks whom to sign for, and then for the result.
    assert!(guest.execute("1 + 1").await.ended.outcome.is_success());
    assert_eq!(counting.seen(), (1, 2));
    assert!(guest.execute("1 + 1").await.ended.outcome.is_success());
    assert_eq!(counting.seen(), (1, 3));
    guest.remove().await;
    subject.finish().await;
    let counting = Arc::into_inner(counting).unwrap();
    counting.runtime.shut_down().await.unwrap();
}
