//! An agent outside a box, on a Unix socket, with a client.

#![allow(dead_code, reason = "each test program uses its own part of this")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use glovebox_agent::{Agent, Options, Spawner};
use glovebox_client::{AgentClient, ClientError, Execution, Identity, UnixConnector};
use glovebox_protocol::agent_config::{AgentConfig, AgentFds, AgentIds, Claim, Start};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::event::{Ended, EventBody};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, InstallationId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::process::StartProcess;
use glovebox_protocol::sign::{BodyDigest, Envelope, Nonce, SignedHeaders, SigningKey};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

pub(crate) mod launcher;
pub(crate) mod tracer;

pub(crate) struct TestAgent {
    pub(crate) agent: Agent,
    pub(crate) client: AgentClient,
    pub(crate) identity: Identity,
    pub(crate) socket: PathBuf,
    pub(crate) workspace: PathBuf,
    /// The time as the agent sees it, in milliseconds; the system's where it is 0.
    pub(crate) clock_ms: Arc<AtomicI64>,
    _folder: TempDir,
}

pub(crate) fn config(identity: &Identity) -> AgentConfig {
    AgentConfig {
        claim: Some(Claim {
            sandbox: identity.sandbox,
            installation: identity.installation,
            keys: vec![identity.key.public()],
            input_limits: InputLimits::default(),
            idle_limit_ms: None,
            is_unclaimed: false,
        }),
        limits: Limits::of(ResourceClass::Small),
        start: Start::Fresh,
        ids: AgentIds {
            agent: AgentIds::WORKLOAD,
            workload: AgentIds::WORKLOAD,
        },
        exec_helper: String::new(),
        python: "python3".into(),
        fds: AgentFds {
            listener: -1,
            launcher: None,
            workload_cgroups: Vec::new(),
            oom_events: None,
        },
    }
}

impl TestAgent {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}, BTreeMap::new()).await
    }

    pub(crate) async fn start_with(
        change: impl FnOnce(&mut AgentConfig),
        env: BTreeMap<String, String>,
    ) -> Self {
        Self::start_in(change, env, |_| {}).await
    }

    /// As [`Self::start_with`], with other surroundings.
    pub(crate) async fn start_in(
        change: impl FnOnce(&mut AgentConfig),
        env: BTreeMap<String, String>,
        surround: impl FnOnce(&mut Options),
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let identity = Identity {
            key: Arc::new(SigningKey::generate().unwrap()),
            installation: InstallationId::new(),
            sandbox: SandboxId::new(),
        };
        let mut config = config(&identity);
        change(&mut config);
        let workspace = folder.path().join("workspace");
        fs_err::create_dir(&workspace).unwrap();
        let clock_ms = Arc::new(AtomicI64::new(0));
        let mut env = env;
        let libraries = glovebox_testkit::toolbox_libraries().unwrap();
        env.insert("LD_LIBRARY_PATH".into(), libraries.to_str().unwrap().into());
        let mut options = Options::new(&workspace, Spawner::Direct { env });
        let (system, fixed) = (Arc::clone(&options.clock), Arc::clone(&clock_ms));
        options.clock = Arc::new(move || match fixed.load(Ordering::Relaxed) {
            0 => system(),
            fixed => fixed,
        });
        surround(&mut options);
        let agent = Agent::new(config, options).unwrap();
        let socket = folder.path().join("agent.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let serving = agent.clone();
        tokio::spawn(async move { serving.serve(listener).await });
        Self {
            client: AgentClient::new(identity.clone(), UnixConnector(socket.clone())),
            agent,
            identity,
            socket,
            workspace,
            clock_ms,
            _folder: folder,
        }
    }
}

/// What the runner in `sandbox/kernel` needs outside a box.
pub(crate) fn kernel_env() -> BTreeMap<String, String> {
    let runner = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sandbox/kernel");
    BTreeMap::from([
        ("PYTHONPATH".into(), runner.into()),
        ("HOME".into(), "/nonexistent".into()),
    ])
}

/// The toolbox's Python.
pub(crate) fn python() -> String {
    let python = glovebox_testkit::toolbox_python().unwrap();
    python.to_str().unwrap().into()
}

pub(crate) fn code(code: &str) -> Execute {
    Execute {
        execution: ExecutionId::new(),
        code: code.into(),
        time_limit_ms: 60_000,
        output_limit_bytes: Execute::default_output_limit_bytes(),
        silent: false,
    }
}

pub(crate) async fn execute(client: &AgentClient, execute: &Execute) -> Done {
    finish(client.execute(execute).await.unwrap()).await
}

pub(crate) async fn eval(client: &AgentClient, text: &str) -> Done {
    execute(client, &code(text)).await
}

pub(crate) fn results(done: &Done) -> Vec<String> {
    let plain = |event: &EventBody| match event {
        EventBody::Result { shown, .. } => Some(shown.data["text/plain"].as_str()?.to_owned()),
        _ => None,
    };
    done.events.iter().filter_map(plain).collect()
}

/// Why the kernel of an earlier call is gone, if this one was told so.
pub(crate) fn replaced(done: &Done) -> Option<&str> {
    done.events.iter().find_map(|event| match event {
        EventBody::KernelReplaced { reason } => Some(reason.as_str()),
        _ => None,
    })
}

pub(crate) fn name(text: &str) -> FileName {
    FileName::from_bytes(text.as_bytes()).unwrap()
}

pub(crate) fn program(argv: &[&str]) -> StartProcess {
    StartProcess {
        execution: ExecutionId::new(),
        argv: argv.iter().map(|argument| (*argument).into()).collect(),
        env: BTreeMap::new(),
        stdin: Default::default(),
        time_limit_ms: 60_000,
        output_limit_bytes: None,
    }
}

pub(crate) fn shell(script: &str) -> StartProcess {
    program(&["/bin/sh", "-c", script])
}

/// What an execution did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// Everything but the output and the end.
    pub(crate) events: Vec<EventBody>,
    pub(crate) ended: Option<Ended>,
}

impl Done {
    pub(crate) fn ended(&self) -> &Ended {
        self.ended.as_ref().unwrap()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

pub(crate) async fn finish(mut execution: Execution) -> Done {
    let mut done = Done::default();
    while let Some(event) = execution.next().await.unwrap() {
        match event {
            EventBody::Stdout(output) => done.stdout.extend_from_slice(&output.0),
            EventBody::Stderr(output) => done.stderr.extend_from_slice(&output.0),
            EventBody::ExecutionEnded(ended) => done.ended = Some(ended),
            other => done.events.push(other),
        }
    }
    done
}

pub(crate) async fn run(client: &AgentClient, start: &StartProcess) -> Result<Done, ClientError> {
    Ok(finish(client.run(start).await?).await)
}

/// The status that a signed request without a body is answered with, whatever its target.
pub(crate) async fn signed_status(test: &TestAgent, method: &str, target: &str) -> u16 {
    signed(test, (method, target), b"").await.0
}

/// The status and the rest of the answer to a signed request, whatever it asks for.
pub(crate) async fn signed(
    test: &TestAgent,
    (method, target): (&str, &str),
    body: &[u8],
) -> (u16, String) {
    let epoch = test.client.health().await.unwrap().epoch;
    let audience = test.identity.sandbox.to_string();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let envelope = Envelope {
        installation: test.identity.installation,
        audience: &audience,
        epoch,
        method,
        path_and_query: target,
        content_length: body.len() as u64,
        body: BodyDigest::of(body),
        unix_ms: i64::try_from(now.as_millis()).unwrap(),
        nonce: Nonce::random().unwrap(),
        key: test.identity.key.id(),
    };
    let signed = SignedHeaders {
        key: envelope.key,
        epoch,
        unix_ms: envelope.unix_ms,
        nonce: envelope.nonce,
        body: envelope.body,
        signature: test.identity.key.sign(&envelope),
    };
    let length = body.len();
    let mut request =
        format!("{method} {target} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n");
    for (name, value) in signed.to_pairs() {
        request += &format!("{name}: {value}\r\n");
    }
    let mut request = (request + "\r\n").into_bytes();
    request.extend_from_slice(body);
    let mut stream = UnixStream::connect(&test.socket).await.unwrap();
    stream.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer[9..12].parse().unwrap(), answer)
}
