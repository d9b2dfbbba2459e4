//! Sandboxes that outlive their runtime: the next one takes them over as they are.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use glovebox_client::{AgentClient, Identity};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::process::{Argument, StartProcess, Stdin};
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::conformance::Ran;
use glovebox_runtime::{
    AgentConnector, Runtime as _, SandboxSpec, SandboxState, Start, ValidatedSpec,
};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options};

/// How long a machine may take to what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    options: Options,
    key: Arc<SigningKey>,
}

impl Stage {
    fn new() -> Self {
        Self {
            options: Options {
                afterwards: Afterwards::TheyGoOn,
                ..support::options()
            },
            key: Arc::new(SigningKey::generate().unwrap()),
        }
    }

    async fn runtime(&self) -> Arc<EmbeddedRuntime> {
        let started = EmbeddedRuntime::start(self.options.clone()).await;
        Arc::new(started.unwrap())
    }

    fn spec(&self, lives: Duration) -> ValidatedSpec {
        let spec = SandboxSpec {
            id: SandboxId::new(),
            installation: self.options.installation,
            keys: vec![self.key.public()],
            limits: Limits::of(ResourceClass::Small),
            input_limits: InputLimits::default(),
            trust_domain: "somebody".into(),
            start: Start::Fresh,
            image: None,
            is_unclaimed: false,
            idle_limit_ms: None,
            hard_deadline_ms: Some(in_ms(lives)),
        };
        spec.validate().unwrap()
    }

    fn client(&self, runtime: &Arc<EmbeddedRuntime>, sandbox: SandboxId) -> AgentClient {
        let identity = Identity {
            key: Arc::clone(&self.key),
            installation: self.options.installation,
            sandbox,
        };
        let runtime = Arc::<EmbeddedRuntime>::clone(runtime);
        AgentClient::new(identity, AgentConnector { runtime, sandbox })
    }

    /// Where the launcher of this installation has its sockets.
    fn folder(&self) -> PathBuf {
        let id = self.options.installation.to_string();
        self.options.run.join(id.rsplit('-').next().unwrap())
    }
}

fn in_ms(time: Duration) -> i64 {
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + time;
    i64::try_from(at.as_millis()).unwrap()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let mut look = tokio::time::interval(Duration::from_millis(20));
    let waiting = async {
        while !is_so() {
            look.tick().await;
        }
    };
    let waited = tokio::time::timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "{what} does not come");
}

async fn execute(client: &AgentClient, code: &str) -> String {
    let cell = Execute {
        execution: ExecutionId::new(),
        code: code.into(),
        time_limit_ms: 60_000,
        output_limit_bytes: Execute::default_output_limit_bytes(),
        silent: false,
    };
    Ran::of(client.execute(&cell).await.unwrap()).await.text()
}

async fn run(client: &AgentClient, code: &str) -> String {
    let start = StartProcess {
        execution: ExecutionId::new(),
        argv: [support::PYTHON, "-c", code].map(Argument::from).into(),
        env: BTreeMap::new(),
        stdin: Stdin::Empty,
        time_limit_ms: 60_000,
        output_limit_bytes: None,
    };
    Ran::of(client.run(&start).await.unwrap()).await.text()
}

#[tokio::test]
async fn the_next_runtime_takes_over_what_the_one_before_has_made() {
    let stage = Stage::new();
    let name = FileName::from_bytes(b"kept.txt").unwrap();
    let first = stage.runtime().await;
    let spec = stage.spec(Duration::from_secs(600));
    let (id, deadline) = (spec.get().id, spec.get().hard_deadline_ms);
    first.create(spec).await.unwrap();
    let kept = Bytes::from_static(b"as it was");
    let client = stage.client(&first, id);
    client.put_bytes(&name, kept.clone()).await.unwrap();
    execute(&client, "x = 41").await;
    drop((client, first));

    let second = stage.runtime().await;
    let found = second.list().await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].id, found[0].hard_deadline_ms), (id, deadline));
    assert_eq!(found[0].state, SandboxState::Running);
    let client = stage.client(&second, id);
    assert_eq!(client.get_bytes(&name, 100).await.unwrap(), kept);
    assert_eq!(execute(&client, "print(x + 1)").await, "42\n");
    assert_eq!(run(&client, "print(6 * 7)").await, "42\n");
    let more = stage.spec(Duration::from_secs(600));
    let another = more.get().id;
    second.create(more).await.unwrap();
    second.remove(id).await.unwrap();
    let left: Vec<_> = second.list().await.unwrap();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].id, another);
    second.shut_down().await.unwrap();
    until("the end of the launcher", || !stage.folder().exists()).await;
}

#[tokio::test]
async fn what_ended_while_nobody_was_there_is_told_to_the_next() {
    let stage = Stage::new();
    let first = stage.runtime().await;
    let spec = stage.spec(Duration::from_millis(2500));
    let id = spec.get().id;
    first.create(spec).await.unwrap();
    drop(first);
    let is_there = || {
        fs_err::read_dir(stage.folder()).is_ok_and(|mut found| {
            found.any(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .to_string_lossy()
                    .contains(&id.to_string())
            })
        })
    };
    assert!(
        is_there(),
        "the agent's socket is not in {}",
        stage.folder().display()
    );
    until("the hard deadline", || !is_there()).await;

    let second = stage.runtime().await;
    match second.inspect(id).await.unwrap().state {
        SandboxState::Ended { reason } => assert_eq!(reason, "it reached its hard time limit"),
        SandboxState::Running => panic!("it runs"),
    }
    second.shut_down().await.unwrap();
}

#[tokio::test]
async fn a_runtime_of_another_configuration_is_not_let_in_and_harms_nothing() {
    let stage = Stage::new();
    let first = stage.runtime().await;
    let spec = stage.spec(Duration::from_secs(600));
    let id = spec.get().id;
    first.create(spec).await.unwrap();
    drop(first);
    let other = Options {
        root_range_start: stage.options.root_range_start + 65_536,
        ..stage.options.clone()
    };
    let refused = EmbeddedRuntime::start(other).await.unwrap_err();
    let mut words = refused.to_string();
    let mut cause = std::error::Error::source(&refused);
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    assert!(words.contains("configured otherwise"), "{words}");

    let second = stage.runtime().await;
    let found = second.inspect(id).await.unwrap();
    assert_eq!(found.state, SandboxState::Running);
    second.shut_down().await.unwrap();
}

#[tokio::test]
async fn memory_that_sandboxes_use_is_counted() {
    let stage = Stage::new();
    let runtime = stage.runtime().await;
    let spec = stage.spec(Duration::from_secs(600));
    let id = spec.get().id;
    runtime.create(spec).await.unwrap();
    let client = stage.client(&runtime, id);
    execute(&client, "pass").await;
    let before = runtime.memory_used().await.unwrap().unwrap();
    execute(
        &client,
        "x = bytearray(200_000_000); x[::4096] = b'y' * len(x[::4096])",
    )
    .await;
    let after = runtime.memory_used().await.unwrap().unwrap();
    assert!(after > before + 150_000_000, "{before} and then {after}");
    runtime.shut_down().await.unwrap();
}
