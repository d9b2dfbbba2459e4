//! The gateway as a program of its own, reached over TLS on loopback, and sandboxes through it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context as _, Result, ensure};
use glovebox_client::{GatewayAddress, GatewayClient, GatewayIdentity, Identity, Trust};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::gateway::{CreateSandbox, SandboxState, SandboxView};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::InputLimits;
use glovebox_protocol::sign::{Credential, Epoch, SigningKey};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options};
use rustix::process::{Pid, Signal, kill_process};

use crate::inspect;
use crate::sandbox::{Place, Sandbox};
use crate::stage::{POOL_GLANCE, POOL_PATIENCE, TRUST_DOMAIN, roomy};

/// How long a sandbox may be there.
const LIFE: Duration = Duration::from_secs(3600);

/// How long making one may take, in milliseconds.
const START_LIMIT_MS: u64 = 120_000;

/// Which runtime the gateway has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Boxes of this machine, so many of them kept ready.
    Embedded(u32),
    /// The Docker engine's containers.
    Docker,
}

/// A gateway that listens, and one client of it.
pub(crate) struct Gateway {
    child: Child,
    kind: Kind,
    shared: Arc<Shared>,
    client: GatewayClient,
    /// What its launcher answers to.
    launcher: Option<Options>,
    /// Holds its state and its sockets.
    _folder: tempfile::TempDir,
}

/// What a client of it needs.
struct Shared {
    address: GatewayAddress,
    credential: Credential,
    installation: InstallationId,
    key: Arc<SigningKey>,
}

impl Gateway {
    /// Starts the one in the folder `programs` and waits until it listens. What `options` say of
    /// data is what it works on.
    ///
    /// # Errors
    /// When it ends before.
    pub(crate) fn start(
        programs: &Path,
        search: &OsStr,
        options: Options,
        kind: Kind,
    ) -> Result<Self> {
        let folder = tempfile::tempdir().context("making a folder for the gateway")?;
        let (credential, written) = Credential::generate().context("making a credential")?;
        let mut options = options;
        options.run = folder.path().join("run");
        options.installation = InstallationId::new();
        options.afterwards = Afterwards::TheyGoOn;
        let key = Arc::new(SigningKey::generate().context("making a key")?);
        let mut command = Command::new(programs.join("glovebox-gateway"));
        command
            .env_clear()
            .env("PATH", search)
            .env("GATEWAY_LISTEN", "127.0.0.1:0")
            .env("GATEWAY_CREDENTIALS", written)
            .env("GATEWAY_AGENT_KEYS", key.public().to_string())
            .env("GATEWAY_INSTALLATION_ID", options.installation.to_string())
            .env("GATEWAY_STATE_DIR", folder.path().join("state"))
            .env("GLOVEBOX_DATA", &options.data)
            .env("GLOVEBOX_RUN", &options.run)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        match kind {
            Kind::Docker => command.env("GATEWAY_RUNTIME", "docker"),
            Kind::Embedded(0) => command.env("GATEWAY_RUNTIME", "embedded"),
            Kind::Embedded(ready) => command.env("GATEWAY_RUNTIME", "embedded").env(
                "GATEWAY_KEEP_READY",
                format!("{ready}:medium:{TRUST_DOMAIN}"),
            ),
        };
        let mut child = command.spawn().context("starting glovebox-gateway")?;
        let stderr = child.stderr.take().context("it has no standard error")?;
        let address = match until_listening(stderr) {
            Ok(address) => address,
            Err(error) => {
                // It has ended, or is of no use.
                let _ = child.kill();
                let _ = child.wait();
                return Err(error);
            }
        };
        let shared = Arc::new(Shared {
            address,
            credential,
            installation: options.installation,
            key,
        });
        Ok(Self {
            child,
            kind,
            client: shared.client(),
            shared,
            launcher: matches!(kind, Kind::Embedded(_)).then_some(options),
            _folder: folder,
        })
    }

    /// A sandbox of the same kind that the stage makes.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) async fn create(&self) -> Result<Sandbox> {
        let id = SandboxId::new();
        let start = match self.kind {
            Kind::Embedded(_) => Start::Template,
            Kind::Docker => Start::Fresh,
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let view = self
            .client
            .create(&CreateSandbox {
                id,
                installation: self.shared.installation,
                image: None,
                limits: roomy(),
                input_limits: InputLimits {
                    file_bytes: 1 << 40,
                    total_bytes: 1 << 40,
                },
                trust_domain: TRUST_DOMAIN.into(),
                start,
                idle_limit_ms: None,
                hard_deadline_ms: i64::try_from((now + LIFE).as_millis())?,
                start_limit_ms: START_LIMIT_MS,
                is_unclaimed: false,
            })
            .await?;
        let agent = self
            .client
            .agent(self.shared.identity(id), view.agent_epoch);
        let (shared, epoch) = (Arc::clone(&self.shared), view.agent_epoch);
        Ok(Sandbox::new(agent, shared.place(id, epoch)))
    }

    /// Ends a sandbox and waits until nothing of it is left.
    ///
    /// # Errors
    /// When something is left.
    pub(crate) async fn remove(&self, sandbox: Sandbox) -> Result<()> {
        let id = sandbox.id();
        drop(sandbox);
        self.client.delete(id).await?;
        Ok(())
    }

    /// Waits until as many sandboxes are there as are kept ready, where none is in use. The last
    /// one may lack its kernel for a moment more: whoever waits after this does not meet it.
    ///
    /// # Errors
    /// When they do not come.
    pub(crate) async fn until_ready(&self) -> Result<()> {
        let Kind::Embedded(count @ 1..) = self.kind else {
            return Ok(());
        };
        let patience = Instant::now() + POOL_PATIENCE;
        while inspect::agents_below(self.child.id())? != count as usize {
            ensure!(
                Instant::now() < patience,
                "{count} sandboxes of the gateway did not become ready within {} s",
                POOL_PATIENCE.as_secs()
            );
            tokio::time::sleep_until((Instant::now() + POOL_GLANCE).into()).await;
        }
        Ok(())
    }

    /// Whether it keeps sandboxes ready.
    pub(crate) const fn keeps_ready(&self) -> bool {
        matches!(self.kind, Kind::Embedded(1..))
    }

    /// The most memory that its process has had so far, in MiB.
    ///
    /// # Errors
    /// When it has ended.
    pub(crate) fn peak_mib(&self) -> Result<f64> {
        inspect::peak_mib(self.child.id())
    }

    /// Ends its sandboxes, itself and, as sandboxes would outlive it, its launcher.
    ///
    /// # Errors
    /// When it did not end in good order, or something is left.
    pub(crate) async fn close(mut self) -> Result<()> {
        let left = self.client.sandboxes(None).await?;
        let is_there = |view: &SandboxView| !matches!(view.state, SandboxState::Ended { .. });
        for view in left.items.into_iter().filter(is_there) {
            self.client.delete(view.id).await?;
        }
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        let status = self.child.wait()?;
        if let Some(launcher) = self.launcher.take() {
            let runtime = EmbeddedRuntime::start(launcher).await?;
            runtime.shut_down().await?;
        }
        ensure!(status.success(), "the gateway ended with {status}");
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It has ended already unless something went wrong before.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Shared {
    fn client(&self) -> GatewayClient {
        let identity = GatewayIdentity {
            credential: self.credential.clone(),
            installation: Some(self.installation),
        };
        GatewayClient::new(identity, self.address.clone())
    }

    fn identity(&self, sandbox: SandboxId) -> Identity {
        Identity {
            key: Arc::clone(&self.key),
            installation: self.installation,
            sandbox,
        }
    }

    /// Where a sandbox is; who opens it there has connections of its own.
    fn place(self: Arc<Self>, id: SandboxId, epoch: Option<Epoch>) -> Place {
        Place::new(id, move || self.client().agent(self.identity(id), epoch))
    }
}

/// Where a gateway listens, from what it tells. The rest of that goes nowhere.
fn until_listening(stderr: ChildStderr) -> Result<GatewayAddress> {
    let mut told = BufReader::new(stderr);
    let mut said = String::new();
    loop {
        let from = said.len();
        ensure!(
            told.read_line(&mut said)? > 0,
            "glovebox-gateway ended before it listened; it said: {said}"
        );
        let line = serde_json::from_str::<serde_json::Value>(&said[from..]).unwrap_or_default();
        if line["event"] != "listening" {
            continue;
        }
        let text = |name: &str| line[name].as_str().context("it does not say where");
        let fingerprint = text("fingerprint")?.parse()?;
        let address = format!("https://{}", text("at")?);
        let address = GatewayAddress::parse(&address, Some(Trust::pinned(fingerprint)), false)?;
        // What it says later must not fill the pipe.
        std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
        return Ok(address);
    }
}
