//! Our side of every measurement: a runtime, and sandboxes in it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use glovebox_client::{AgentClient, ByteStream, Identity};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::{Epoch, SigningKey};
use glovebox_runtime::{Runtime as _, SandboxSpec, Start};
use glovebox_runtime_embedded::tree::{LOCK, Programs, Setup, Silent};
use glovebox_runtime_embedded::{Afterwards, EmbeddedRuntime, Options, Pool, ReadyKind};

use crate::gateway::{Gateway, Kind};
use crate::sandbox::{Place, Sandbox};
use crate::server::Server;

/// Whose all sandboxes are: they may come from one template.
pub(crate) const TRUST_DOMAIN: &str = "bench";

/// How long a pool may take to fill.
pub(crate) const POOL_PATIENCE: Duration = Duration::from_secs(60);

/// How often is looked whether it is full.
pub(crate) const POOL_GLANCE: Duration = Duration::from_millis(5);

/// The first host id of the range that root gives to sandboxes.
const ROOT_RANGE_START: u32 = 1_879_048_192;

/// A runtime with a key and an installation of its own.
pub(crate) struct Stage {
    shared: Arc<Shared>,
    root_tree: PathBuf,
    programs: PathBuf,
    search: OsString,
    options: Options,
    /// Holds the sockets; removed with the stage.
    _run: tempfile::TempDir,
}

struct Shared {
    runtime: EmbeddedRuntime,
    key: Arc<SigningKey>,
    installation: InstallationId,
}

impl Stage {
    /// Starts the launcher on trees that are set up.
    ///
    /// # Errors
    /// When a tree or a program is missing, or boxes cannot be made here.
    pub(crate) async fn open(programs: &Path, data: &Path, search: &OsStr) -> Result<Self> {
        let (programs, data) = (
            fs_err::canonicalize(programs)?,
            &fs_err::canonicalize(data)?,
        );
        let setup = Setup {
            data: data.into(),
            programs: Programs::in_folder(&programs),
            python: None,
            search: std::env::split_paths(search).collect(),
            lock: LOCK.into(),
            office: true,
        };
        let trees = setup
            .ensure(&mut Silent)
            .context("looking for the trees that boxes stand on")?;
        let root_tree = trees
            .layers
            .last()
            .map(|layer| data.join(layer))
            .context("there is no root tree")?;
        let run = tempfile::tempdir().context("making a folder for sockets")?;
        let installation = InstallationId::new();
        let options = Options {
            launcher: programs.join("glovebox-launcher"),
            data: data.into(),
            run: run.path().into(),
            layers: trees.layers,
            installation,
            root_range_start: ROOT_RANGE_START,
            accept_weaker: Vec::new(),
            afterwards: Afterwards::TheyEnd,
        };
        let runtime = EmbeddedRuntime::start(options.clone())
            .await
            .context("starting the runtime")?;
        Ok(Self {
            shared: Arc::new(Shared {
                runtime,
                key: Arc::new(SigningKey::generate().context("making a key")?),
                installation,
            }),
            root_tree,
            programs,
            search: search.into(),
            options,
            _run: run,
        })
    }

    /// The gateway's program beside this runtime, with a runtime of its own.
    ///
    /// # Errors
    /// When it does not start.
    pub(crate) fn gateway(&self, kind: Kind) -> Result<Gateway> {
        Gateway::start(&self.programs, &self.search, self.options.clone(), kind)
    }

    /// Measures on the server's program, which works on these queues with a gateway and a runtime of
    /// its own, and ends it.
    ///
    /// # Errors
    /// When it does not start or end, or what is measured fails: that first.
    pub(crate) async fn on_server<T>(
        &self,
        queues: &str,
        measure: impl AsyncFnOnce(&Server) -> Result<T>,
    ) -> Result<T> {
        let server = Server::start(&self.programs, &self.options.data, queues).await?;
        let measured = measure(&server).await;
        let closed = server.close();
        // What went wrong first is what has to be known.
        let measured = measured?;
        closed?;
        Ok(measured)
    }

    /// Whether agent and workload have ids of their own, which an ordinary user without a range
    /// cannot give them.
    pub(crate) fn has_two_ids(&self) -> bool {
        self.shared.runtime.facts().two_ids
    }

    /// The plain tree with Python and its packages.
    pub(crate) fn root_tree(&self) -> &Path {
        &self.root_tree
    }

    /// A sandbox with room for everything that is measured.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) async fn create(&self, start: Start) -> Result<Sandbox> {
        self.create_within(roomy(), start).await
    }

    /// A sandbox with these limits; files of any size may be pushed into it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) async fn create_within(&self, limits: Limits, start: Start) -> Result<Sandbox> {
        let id = SandboxId::new();
        let spec = SandboxSpec {
            id,
            installation: self.shared.installation,
            keys: vec![self.shared.key.public()],
            image: None,
            limits,
            input_limits: InputLimits {
                file_bytes: 1 << 40,
                total_bytes: 1 << 40,
            },
            trust_domain: TRUST_DOMAIN.into(),
            start,
            idle_limit_ms: None,
            is_unclaimed: false,
            hard_deadline_ms: None,
        };
        let made = self.shared.runtime.create(spec.validate()?).await?;
        Ok(Arc::clone(&self.shared).place(id, made.agent_epoch).open())
    }

    /// Keeps so many sandboxes ready that [`Self::create`] with a template takes, and waits until
    /// they are, or until none is left.
    ///
    /// # Errors
    /// When they do not become ready.
    pub(crate) async fn keep_ready(&self, count: u32) -> Result<()> {
        self.shared.runtime.keep_ready(pooled(), count).await?;
        self.until_ready(count).await
    }

    /// Waits until as many are ready as are kept.
    ///
    /// # Errors
    /// When they do not become ready.
    pub(crate) async fn until_ready(&self, count: u32) -> Result<()> {
        let patience = Instant::now() + POOL_PATIENCE;
        while self.pool().await?.map_or(0, |pool| pool.ready) != count {
            ensure!(
                Instant::now() < patience,
                "{count} sandboxes did not become ready within {} s",
                POOL_PATIENCE.as_secs()
            );
            tokio::time::sleep_until((Instant::now() + POOL_GLANCE).into()).await;
        }
        Ok(())
    }

    /// What is known of the sandboxes that are kept ready.
    ///
    /// # Errors
    /// When the launcher does not say.
    pub(crate) async fn pool(&self) -> Result<Option<Pool>> {
        let measured = self.shared.runtime.measure().await?;
        Ok(measured.pool(&pooled()).cloned())
    }

    /// The process id of the template that kernels come from.
    ///
    /// # Errors
    /// When the launcher does not say, or there is none.
    pub(crate) async fn template(&self) -> Result<i32> {
        let measured = self.shared.runtime.measure().await?;
        let template = measured.template(TRUST_DOMAIN);
        Ok(template.context("there is no template")?.pid)
    }

    /// The steps in which the launcher made a sandbox, each with its milliseconds; none where it
    /// had been made before it was asked for.
    pub(crate) fn steps(&self, sandbox: &Sandbox) -> Vec<(String, f64)> {
        let made = self.shared.runtime.made(sandbox.id());
        made.filter(|made| !made.was_ready)
            .into_iter()
            .flat_map(|made| made.steps)
            .map(|(step, length)| (step, length.as_secs_f64() * 1000.0))
            .collect()
    }

    /// Ends a sandbox and waits until nothing of it is left.
    ///
    /// # Errors
    /// When something is left.
    pub(crate) async fn remove(&self, sandbox: Sandbox) -> Result<()> {
        let id = sandbox.id();
        drop(sandbox);
        Ok(self.shared.runtime.remove(id).await?)
    }

    /// Ends everything.
    ///
    /// # Errors
    /// When something is left, or a sandbox is still in use.
    pub(crate) async fn close(self) -> Result<()> {
        let shared =
            Arc::try_unwrap(self.shared).map_err(|_| anyhow!("a sandbox is still in use"))?;
        Ok(shared.runtime.shut_down().await?)
    }
}

/// The kind of sandbox that is kept ready.
fn pooled() -> ReadyKind {
    ReadyKind {
        trust_domain: TRUST_DOMAIN.into(),
        start: Start::Template,
        limits: roomy(),
    }
}

/// The limits of the medium class: its two processors are all that small machines have.
pub(crate) fn roomy() -> Limits {
    Limits::of(ResourceClass::Medium)
}

impl Shared {
    /// Where a sandbox is.
    fn place(self: Arc<Self>, id: SandboxId, epoch: Option<Epoch>) -> Place {
        Place::new(id, move || {
            let identity = Identity {
                key: Arc::clone(&self.key),
                installation: self.installation,
                sandbox: id,
            };
            let shared = Arc::clone(&self);
            AgentClient::new(identity, move || {
                let shared = Arc::clone(&shared);
                async move {
                    let stream = shared.runtime.connect(id).await;
                    let stream = stream.map_err(std::io::Error::other)?;
                    Ok(Box::new(stream) as Box<dyn ByteStream>)
                }
            })
            .knowing(epoch)
        })
    }
}

/// Milliseconds since `begun`.
pub(crate) fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1000.0
}

/// The machine's monotonic clock in milliseconds, the same that `time.monotonic_ns()` reads.
pub(crate) fn monotonic_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}
