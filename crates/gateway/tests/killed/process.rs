//! A gateway as a process of its own, over a real runtime.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use glovebox_client::{AgentClient, GatewayAddress, GatewayClient, GatewayIdentity, Identity};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::gateway::CreateSandbox;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{Credential, SigningKey};

use crate::engine;

/// How long a sandbox of these tests may be there, in milliseconds.
const LIFE_MS: i64 = 600_000;

/// Which runtime is behind the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Embedded,
    Docker,
}

/// A gateway's process, and what a client of it needs.
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    folder: tempfile::TempDir,
    run: PathBuf,
    installation: InstallationId,
    credential: Credential,
    key: Arc<SigningKey>,
    command: Command,
    child: Child,
    _cleaner: engine::Cleaner,
}

impl Stage {
    /// Starts one, and waits until it listens.
    pub(crate) async fn start(kind: Kind) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = rustix::process::geteuid();
        let run = if user.is_root() {
            PathBuf::from("/run/glovebox-test")
        } else {
            PathBuf::from(format!("/tmp/glovebox-test-{}", user.as_raw()))
        };
        let (credential, written) = Credential::generate().unwrap();
        let installation = InstallationId::new();
        let key = Arc::new(SigningKey::generate().unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_glovebox-gateway"));
        command
            .env_clear()
            .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
            .env("GATEWAY_RUNTIME", kind.name())
            .env(
                "GATEWAY_LISTEN",
                format!("unix:{}", socket(folder.path()).display()),
            )
            .env("GATEWAY_CREDENTIALS", written)
            .env("GATEWAY_AGENT_KEYS", key.public().to_string())
            .env("GATEWAY_INSTALLATION_ID", installation.to_string())
            .env("GATEWAY_STATE_DIR", folder.path().join("state"))
            .env("GLOVEBOX_DATA", glovebox_testkit::test_data().unwrap())
            .env("GLOVEBOX_RUN", &run)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let child = spawn(&mut command);
        Self {
            kind,
            folder,
            run,
            installation,
            credential,
            key,
            command,
            child,
            _cleaner: engine::Cleaner(installation),
        }
    }

    /// A client of it.
    pub(crate) fn gateway(&self) -> GatewayClient {
        let identity = GatewayIdentity {
            credential: self.credential.clone(),
            installation: Some(self.installation),
        };
        GatewayClient::new(identity, GatewayAddress::Unix(socket(self.folder.path())))
    }

    /// A client of the agent in one of its sandboxes.
    pub(crate) fn agent(&self, sandbox: SandboxId) -> AgentClient {
        let identity = Identity {
            key: Arc::clone(&self.key),
            installation: self.installation,
            sandbox,
        };
        self.gateway().agent(identity, None)
    }

    /// A small sandbox.
    pub(crate) fn wanted(&self, id: SandboxId) -> CreateSandbox {
        CreateSandbox {
            id,
            installation: self.installation,
            image: None,
            limits: Limits::of(ResourceClass::Small),
            input_limits: InputLimits::default(),
            trust_domain: "somebody".into(),
            start: Start::Fresh,
            idle_limit_ms: None,
            hard_deadline_ms: glovebox_gateway::system_clock()() + LIFE_MS,
            start_limit_ms: 60_000,
            is_unclaimed: false,
        }
    }

    /// Kills it without a word.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Starts it anew.
    pub(crate) fn restart(&mut self) {
        self.child = spawn(&mut self.command);
    }

    /// Takes away its sandboxes, ends it, and waits until its launcher has ended too.
    pub(crate) async fn finish(mut self) {
        for view in self.gateway().sandboxes(None).await.unwrap().items {
            self.gateway().delete(view.id).await.unwrap();
        }
        let text = self.installation.to_string();
        let folder = self.run.join(text.rsplit('-').next().unwrap());
        let stopped = rustix::process::kill_process(
            rustix::process::Pid::from_child(&self.child),
            rustix::process::Signal::TERM,
        );
        stopped.unwrap();
        assert!(self.child.wait().unwrap().success());
        match self.kind {
            Kind::Embedded => end_launcher(&folder).await,
            Kind::Docker => assert!(engine::containers(self.installation).is_empty()),
        }
    }

    /// Kills the launcher without a word.
    pub(crate) fn kill_launcher(&self) {
        signal_launcher(&self.launcher_folder(), rustix::process::Signal::KILL);
    }

    /// Starts a second gateway beside it that has the same installation and another state folder,
    /// and tells how it ended and what it said.
    pub(crate) fn second(&mut self) -> (bool, String) {
        let other = tempfile::tempdir().unwrap();
        let listen = format!("unix:{}", socket(other.path()).display());
        let state = other.path().join("state");
        self.command
            .env("GATEWAY_STATE_DIR", state)
            .env("GATEWAY_LISTEN", listen);
        let ended = self.command.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        (ended.status.success(), said)
    }

    fn launcher_folder(&self) -> PathBuf {
        let text = self.installation.to_string();
        self.run.join(text.rsplit('-').next().unwrap())
    }

    /// How many containers there are of this installation.
    pub(crate) fn containers(&self) -> usize {
        engine::containers(self.installation).len()
    }
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded",
            Self::Docker => "docker",
        }
    }
}

/// A launcher that stays waits a minute for the next gateway; these tests do not.
async fn end_launcher(folder: &Path) {
    use tokio::io::AsyncReadExt as _;
    let mut line = tokio::net::UnixStream::connect(folder.join("control"))
        .await
        .unwrap();
    // Whoever says something else than what it was configured with is sent away; a signal is how
    // people end it.
    signal_launcher(folder, rustix::process::Signal::TERM);
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(60), line.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the launcher does not end");
}

/// Sends a signal to the processes of the launcher, which hold its lock file.
fn signal_launcher(folder: &Path, signal: rustix::process::Signal) {
    let lock = fs_err::canonicalize(folder.join("launcher.lock")).unwrap();
    let holds = |process: &Path| {
        let fds = fs_err::read_dir(process.join("fd"));
        fds.is_ok_and(|mut fds| {
            fds.any(|fd| {
                fd.is_ok_and(|fd| fs_err::read_link(fd.path()).is_ok_and(|link| link == lock))
            })
        })
    };
    let launchers = fs_err::read_dir("/proc").unwrap().filter_map(|entry| {
        let path = entry.ok()?.path();
        let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
        holds(&path).then_some(pid)
    });
    for pid in launchers.collect::<Vec<_>>() {
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        // The inner process ends with the outer one.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("state/gateway.sock")
}

fn spawn(command: &mut Command) -> Child {
    let mut child = command.spawn().unwrap();
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        let read = told.read_line(&mut line).unwrap();
        assert!(read > 0, "the gateway has ended");
        if line.contains("\"listening\"") {
            break;
        }
    }
    // What it says later is of no use here, and must not fill the pipe.
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    child
}
