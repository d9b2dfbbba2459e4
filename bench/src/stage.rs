//! Our side of every measurement: a runtime, and sandboxes in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use bytes::Bytes;
use glovebox_client::{AgentClient, ByteStream, Execution, Identity};
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::event::{Ended, EventBody, Outcome};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, InstallationId, SandboxId};
use glovebox_protocol::kernel::Execute;
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::process::{StartProcess, Stdin};
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::{Runtime as _, SandboxSpec, Start};
use glovebox_runtime_embedded::tree::{LOCK, Programs, Setup, Silent};
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};

/// Nothing that is measured takes longer, in milliseconds.
const TIME_LIMIT_MS: u64 = 120_000;

/// The first host id of the range that root gives to sandboxes.
const ROOT_RANGE_START: u32 = 1_879_048_192;

/// A runtime with a key and an installation of its own.
pub(crate) struct Stage {
    shared: Arc<Shared>,
    root_tree: PathBuf,
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
    pub(crate) async fn open(programs: &Path, data: &Path, search: Vec<PathBuf>) -> Result<Self> {
        let (programs, data) = (
            fs_err::canonicalize(programs)?,
            &fs_err::canonicalize(data)?,
        );
        let setup = Setup {
            data: data.into(),
            programs: Programs {
                agent: programs.join("glovebox-agent"),
                exec: programs.join("glovebox-exec"),
            },
            python: None,
            search,
            lock: LOCK.into(),
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
        let runtime = EmbeddedRuntime::start(Options {
            launcher: programs.join("glovebox-launcher"),
            data: data.into(),
            run: run.path().into(),
            layers: trees.layers,
            installation,
            root_range_start: ROOT_RANGE_START,
            accept_weaker: Vec::new(),
        })
        .await
        .context("starting the runtime")?;
        Ok(Self {
            shared: Arc::new(Shared {
                runtime,
                key: Arc::new(SigningKey::generate().context("making a key")?),
                installation,
            }),
            root_tree,
            _run: run,
        })
    }

    /// The plain tree with Python and its packages.
    pub(crate) fn root_tree(&self) -> &Path {
        &self.root_tree
    }

    /// A sandbox with room for everything that is measured.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) async fn create(&self) -> Result<Sandbox> {
        let unbounded = InputLimits {
            file_bytes: 1 << 40,
            total_bytes: 1 << 40,
        };
        self.create_with(roomy(), unbounded).await
    }

    /// A sandbox with these limits.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) async fn create_with(
        &self,
        limits: Limits,
        input_limits: InputLimits,
    ) -> Result<Sandbox> {
        let id = SandboxId::new();
        let spec = SandboxSpec {
            id,
            installation: self.shared.installation,
            keys: vec![self.shared.key.public()],
            limits,
            input_limits,
            trust_domain: "bench".into(),
            start: Start::Fresh,
            idle_limit_ms: None,
            hard_deadline_ms: None,
        };
        self.shared.runtime.create(spec.validate()?).await?;
        Ok(Place {
            shared: Arc::clone(&self.shared),
            id,
        }
        .open())
    }

    /// Ends a sandbox and waits until nothing of it is left.
    ///
    /// # Errors
    /// When something is left.
    pub(crate) async fn remove(&self, sandbox: Sandbox) -> Result<()> {
        let id = sandbox.place.id;
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

/// The limits of the medium class: its two processors are all that small machines have.
pub(crate) fn roomy() -> Limits {
    Limits::of(ResourceClass::Medium)
}

/// Where a sandbox is; can be taken to another thread and opened there.
#[derive(Clone)]
pub(crate) struct Place {
    shared: Arc<Shared>,
    id: SandboxId,
}

impl Place {
    /// A client with connections of its own, which belong to the runtime that it is used in.
    pub(crate) fn open(self) -> Sandbox {
        let identity = Identity {
            key: Arc::clone(&self.shared.key),
            installation: self.shared.installation,
            sandbox: self.id,
        };
        let (shared, id) = (Arc::clone(&self.shared), self.id);
        let client = AgentClient::new(identity, move || {
            let shared = Arc::clone(&shared);
            async move {
                let stream = shared
                    .runtime
                    .connect(id)
                    .await
                    .map_err(std::io::Error::other)?;
                Ok(Box::new(stream) as Box<dyn ByteStream>)
            }
        });
        Sandbox {
            client,
            place: self,
        }
    }
}

/// One sandbox and a client of its agent.
pub(crate) struct Sandbox {
    client: AgentClient,
    place: Place,
}

impl Sandbox {
    /// Which one it is.
    pub(crate) const fn id(&self) -> SandboxId {
        self.place.id
    }

    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        self.place.clone()
    }

    /// Starts `python3 -c CODE`.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn start_python(&self, code: &str) -> Result<Running> {
        let start = StartProcess {
            execution: ExecutionId::new(),
            argv: ["python3", "-c", code].map(Into::into).into(),
            env: std::collections::BTreeMap::default(),
            stdin: Stdin::Empty,
            time_limit_ms: TIME_LIMIT_MS,
            output_limit_bytes: None,
        };
        Ok(Running(self.client.run(&start).await?))
    }

    /// Runs code in the kernel, which is started if there is none; gives the bytes that it wrote.
    ///
    /// # Errors
    /// When it does not succeed.
    pub(crate) async fn execute(&self, code: &str) -> Result<u64> {
        let mut running = self.start_code(code, TIME_LIMIT_MS).await?;
        running.finish().await
    }

    /// Runs code in the kernel under a time limit and gives how it ended.
    ///
    /// # Errors
    /// When it cannot be run.
    pub(crate) async fn execute_within(&self, code: &str, time_limit_ms: u64) -> Result<Outcome> {
        let mut running = self.start_code(code, time_limit_ms).await?;
        Ok(running.read(|_| ()).await?.outcome)
    }

    /// Runs code in the kernel and gives what it wrote last, at most some bytes, and how it ended.
    ///
    /// # Errors
    /// When it cannot be run.
    pub(crate) async fn last_words(&self, code: &str) -> Result<(Vec<u8>, Outcome)> {
        let mut running = self.start_code(code, TIME_LIMIT_MS).await?;
        let mut said = Vec::new();
        let ended = running.read(|bytes| said.extend_from_slice(bytes)).await?;
        Ok((said, ended.outcome))
    }

    async fn start_code(&self, code: &str, time_limit_ms: u64) -> Result<Running> {
        let execute = Execute {
            execution: ExecutionId::new(),
            code: code.into(),
            time_limit_ms,
            output_limit_bytes: u64::MAX,
            silent: false,
        };
        Ok(Running(self.client.execute(&execute).await?))
    }

    /// Pushes a file in.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn put(&self, name: &str, bytes: &Bytes) -> Result<()> {
        self.client.put_bytes(&named(name)?, bytes.clone()).await?;
        Ok(())
    }

    /// Fetches a file and gives its length; its bytes go nowhere, as a disk would be measured too.
    ///
    /// # Errors
    /// When the agent refuses, or the hash is wrong.
    pub(crate) async fn get(&self, name: &str) -> Result<u64> {
        let got = self
            .client
            .get(&named(name)?, &mut tokio::io::sink(), u64::MAX)
            .await?;
        Ok(got.bytes)
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// When the agent refuses.
    pub(crate) async fn delete(&self, name: &str) -> Result<()> {
        Ok(self.client.delete(&named(name)?).await?)
    }
}

/// Something that runs in a sandbox.
pub(crate) struct Running(Execution);

impl Running {
    /// Waits for the first bytes of output.
    ///
    /// # Errors
    /// When it ends without any.
    pub(crate) async fn first_output(&mut self) -> Result<()> {
        while let Some(event) = self.0.next().await? {
            match event {
                EventBody::Stdout(_) => return Ok(()),
                EventBody::ExecutionEnded(ended) => bail!("it wrote nothing and {}", ended.outcome),
                _ => {}
            }
        }
        bail!("it wrote nothing")
    }

    /// Waits for the end, which has to be a success; gives the bytes that were written.
    ///
    /// # Errors
    /// When it did not succeed, with what it wrote to standard error.
    pub(crate) async fn finish(&mut self) -> Result<u64> {
        let mut count = 0;
        let ended = self.read(|bytes| count += bytes.len() as u64).await?;
        ensure!(ended.outcome.is_success(), "it {}", ended.outcome);
        Ok(count)
    }

    async fn read(&mut self, mut wrote: impl FnMut(&[u8])) -> Result<Ended> {
        let mut complaint = Vec::new();
        while let Some(event) = self.0.next().await? {
            match event {
                EventBody::Stdout(output) => wrote(&output.0),
                EventBody::Stderr(output) if complaint.len() < 4096 => {
                    complaint.extend_from_slice(&output.0)
                }
                EventBody::Error { name, value, .. } => {
                    complaint = format!("{name}: {value}").into_bytes()
                }
                EventBody::ExecutionEnded(ended) => {
                    if let Outcome::Exited { code: 1.. } | Outcome::Raised { .. } = ended.outcome {
                        bail!("it failed: {}", String::from_utf8_lossy(&complaint));
                    }
                    return Ok(ended);
                }
                EventBody::Failed(body) => bail!("the agent failed: {}", body.message),
                _ => {}
            }
        }
        bail!("its events ended before it did")
    }
}

fn named(name: &str) -> Result<FileName> {
    Ok(FileName::from_bytes(name)?)
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
