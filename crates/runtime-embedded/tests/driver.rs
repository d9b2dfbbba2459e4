//! What the driver says to launcher and agents, counted on a launcher that only plays one.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use glovebox_box::control::{
    BoxFacts, BoxKind, FromLauncher, PodFacts, PoolFacts, TemplateFacts, ToLauncher,
};
use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::health::Health;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{Epoch, SigningKey};
use glovebox_runtime::{Runtime as _, SandboxSpec, Start};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options, ReadyKind};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;

const IDS: AgentIds = AgentIds {
    agent: 999,
    workload: 1000,
};

/// A launcher that writes down what it is asked and gives the same answers to everybody.
const LAUNCHER: &str = r#"#!/bin/sh
exec 3>&0
read -r config
printf '%s\n' '@READY@' >&3
while read -r request; do
    printf '%s\n' "$request" >> '@REQUESTS@'
    id=${request#*'"id":'}
    id=${id%%[,\}]*}
    case $request in
    *'"op":"create"'*) answer='@CREATED@' ;;
    *'"op":"keep_ready"'*) answer='@KEPT@' ;;
    *'"op":"measure"'*) answer='@MEASURED@' ;;
    *) answer='@REMOVED@' ;;
    esac
    printf '%s\n' "$answer" | sed "s/\"id\":0/\"id\":$id/" >&3
done
"#;

struct Played {
    runtime: EmbeddedRuntime,
    installation: InstallationId,
    key: SigningKey,
    /// Connections to the agent, each of which asked how it is.
    connections: Arc<AtomicUsize>,
    folder: TempDir,
}

fn kind(layers: &[String]) -> BoxKind {
    BoxKind {
        trust_domain: "somebody".into(),
        start: Start::Template,
        limits: Limits::of(ResourceClass::Small),
        layers: layers.to_vec(),
    }
}

impl Played {
    /// A runtime whose sandboxes all have one agent, and were ready or not.
    async fn start(was_ready: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("agent");
        let connections = play_agent(&socket);
        let layers = vec!["layers/top".to_owned()];
        let facts = BoxFacts {
            sandbox: SandboxId::new(),
            socket,
            pid: 1,
            ids: IDS,
            host_ids: IDS,
            hard_deadline_ms: None,
            agent_epoch: was_ready.then(|| Epoch::random().unwrap()),
            was_ready,
            stages_us: Vec::new(),
        };
        let ready = FromLauncher::Ready(PodFacts {
            two_ids: true,
            cgroup_version: 2,
            landlock_abi: 7,
            weaker: Vec::new(),
        });
        let pools = vec![PoolFacts {
            kind: kind(&layers),
            wanted: 4,
            ready: 3,
            hits: 2,
            misses: 1,
            aged_out: 5,
            last_refill_us: 1500,
            oldest_ms: 20,
        }];
        let templates = vec![TemplateFacts {
            trust_domain: "somebody".into(),
            ready: true,
            kernels: 7,
            age_ms: 60_000,
            pid: 4711,
        }];
        let measured = FromLauncher::Measured {
            id: 0,
            pools,
            templates,
            memory_bytes: Some(7),
        };
        let json = |answer: &FromLauncher| serde_json::to_string(answer).unwrap();
        let requests = folder.path().join("requests");
        let script = LAUNCHER
            .replace("@READY@", &json(&ready))
            .replace("@REQUESTS@", requests.to_str().unwrap())
            .replace("@CREATED@", &json(&FromLauncher::Created { id: 0, facts }))
            .replace("@KEPT@", &json(&FromLauncher::Kept { id: 0 }))
            .replace("@MEASURED@", &json(&measured))
            .replace("@REMOVED@", &json(&FromLauncher::Removed { id: 0 }));
        let launcher = folder.path().join("launcher");
        fs_err::write(&launcher, script).unwrap();
        fs_err::set_permissions(&launcher, std::fs::Permissions::from_mode(0o755)).unwrap();
        let installation = InstallationId::new();
        let options = Options {
            launcher,
            data: folder.path().to_owned(),
            run: folder.path().join("run"),
            layers,
            installation,
            root_range_start: 0,
            accept_weaker: Vec::new(),
            afterwards: Afterwards::TheyEnd,
        };
        Self {
            runtime: EmbeddedRuntime::start(options).await.unwrap(),
            installation,
            key: SigningKey::generate().unwrap(),
            connections,
            folder,
        }
    }

    fn spec(&self) -> SandboxSpec {
        let kind = kind(&[]);
        SandboxSpec {
            id: SandboxId::new(),
            installation: self.installation,
            keys: vec![self.key.public()],
            image: None,
            limits: kind.limits,
            input_limits: InputLimits::default(),
            trust_domain: kind.trust_domain,
            start: kind.start,
            idle_limit_ms: Some(60_000),
            is_unclaimed: false,
            hard_deadline_ms: None,
        }
    }

    /// What the launcher was asked, in order.
    fn requests(&self) -> Vec<ToLauncher> {
        let text = fs_err::read_to_string(self.folder.path().join("requests")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// Answers every connection as an agent does that is asked how it is.
fn play_agent(socket: &Path) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(socket).unwrap();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let health = serde_json::to_string(&Health {
                protocol: glovebox_protocol::PROTOCOL_VERSION,
                epoch: Epoch::random().unwrap(),
            })
            .unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            assert!(request.starts_with(b"GET /v1/health "));
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                health.len()
            );
            stream.write_all((head + &health).as_bytes()).await.unwrap();
            // As an agent does, it leaves the end of the connection to whoever opened it.
            let _ = stream.read_to_end(&mut request).await;
        }
    });
    connections
}

#[tokio::test]
async fn a_ready_box_is_given_away_in_one_exchange_with_the_launcher_and_none_with_its_agent() {
    let played = Played::start(true).await;
    let spec = played.spec();
    let made = played.runtime.create(spec.clone().validate().unwrap());
    made.await.unwrap();
    assert_eq!(played.connections.load(Ordering::SeqCst), 0);
    let requests = played.requests();
    let [ToLauncher::Create { spec: asked, .. }] = &requests[..] else {
        panic!("{requests:?}");
    };
    assert_eq!(asked.sandbox, spec.id);
    assert_eq!(asked.kind, kind(&["layers/top".into()]));
    assert_eq!(asked.idle_limit_ms, spec.idle_limit_ms);
}

#[tokio::test]
async fn the_agent_of_a_box_that_was_made_is_asked_once_how_it_is() {
    let played = Played::start(false).await;
    let made = played.runtime.create(played.spec().validate().unwrap());
    made.await.unwrap();
    assert_eq!(played.connections.load(Ordering::SeqCst), 1);
    assert_eq!(played.requests().len(), 1);
}

#[tokio::test]
async fn a_kind_is_kept_ready_on_the_layers_of_the_runtime() {
    let played = Played::start(true).await;
    let kept = ReadyKind::of(&played.spec());
    played.runtime.keep_ready(kept.clone(), 4).await.unwrap();
    let requests = played.requests();
    let [
        ToLauncher::KeepReady {
            kind: asked, count, ..
        },
    ] = &requests[..]
    else {
        panic!("{requests:?}");
    };
    assert_eq!((asked, *count), (&kind(&["layers/top".into()]), 4));

    let measured = played.runtime.measure().await.unwrap();
    let pool = measured.pool(&kept).unwrap();
    assert_eq!((pool.wanted, pool.ready), (4, 3));
    assert_eq!((pool.hits, pool.misses, pool.aged_out), (2, 1, 5));
    assert_eq!(pool.last_refill, Duration::from_micros(1500));
    assert_eq!(pool.oldest, Duration::from_millis(20));
    let template = measured.template("somebody").unwrap();
    assert_eq!((template.pid, template.kernels), (4711, 7));
    assert_eq!(template.age, Duration::from_secs(60));
    assert!(measured.template("somebody else").is_none());
}
