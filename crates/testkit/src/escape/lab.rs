//! A runtime to attack, and sandboxes of it to attack from.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use glovebox_client::{AgentClient, ByteStream, GatewayClient, Identity};
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ExecutionId, InstallationId, SandboxId};
use glovebox_protocol::kernel::{Execute, StartKernel};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::process::{Argument, StartProcess, Stdin};
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::{Runtime, SandboxSpec, Start};

use super::PROBES;
use super::run::{Ran, Running};

/// Python, as every sandbox has it.
pub const PYTHON: &str = "/opt/python/bin/python3";
/// Where the probes lie in a sandbox.
pub(super) const PROBE_FOLDER: &str = "/workspace/probes";
/// The time limit of everything that should not need one.
const LONG_MS: u64 = 120_000;

/// A runtime under attack.
#[derive(Clone)]
pub struct Lab {
    /// The runtime.
    pub runtime: Arc<dyn Runtime>,
    installation: InstallationId,
    key: Arc<SigningKey>,
    landlock_abi: u32,
    start: Start,
    trust_domain: String,
    gateway: Option<GatewayClient>,
}

impl Lab {
    /// A lab with a key of its own.
    ///
    /// # Errors
    /// When the operating system has no random bytes.
    pub fn new(runtime: Arc<dyn Runtime>, installation: InstallationId) -> Result<Self> {
        let key = SigningKey::generate().context("making a key")?;
        Ok(Self::with_key(runtime, installation, key))
    }

    /// A lab whose key the caller knows.
    #[must_use]
    pub fn with_key(
        runtime: Arc<dyn Runtime>,
        installation: InstallationId,
        key: SigningKey,
    ) -> Self {
        Self {
            runtime,
            installation,
            key: Arc::new(key),
            landlock_abi: 0,
            start: Start::Fresh,
            trust_domain: "escape suite".into(),
            gateway: None,
        }
    }

    /// Says which version of Landlock the runtime's sandboxes are under.
    #[must_use]
    pub const fn with_landlock(mut self, abi: u32) -> Self {
        self.landlock_abi = abi;
        self
    }

    /// Says that agents are reached through this gateway.
    #[must_use]
    pub fn through(mut self, gateway: GatewayClient) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// The same lab, whose kernels start in this way.
    #[must_use]
    pub fn starting(&self, start: Start) -> Self {
        Self {
            start,
            ..self.clone()
        }
    }

    /// How the lab's kernels start.
    #[must_use]
    pub const fn start(&self) -> Start {
        self.start
    }

    /// The same lab, whose sandboxes are of another trust domain.
    #[must_use]
    pub fn of_domain(&self, trust_domain: &str) -> Self {
        Self {
            trust_domain: trust_domain.into(),
            ..self.clone()
        }
    }

    /// The version of Landlock that the runtime's sandboxes are under; 0 where there is none.
    #[must_use]
    pub const fn landlock_abi(&self) -> u32 {
        self.landlock_abi
    }

    /// Limits small enough that attacks on them take little time.
    #[must_use]
    pub fn small_limits() -> Limits {
        const MIB: u64 = 1024 * 1024;
        Limits {
            memory_bytes: 256 * MIB,
            processes: 64,
            workspace_bytes: 64 * MIB,
            workspace_inodes: 1024,
            file_size_bytes: 64 * MIB,
            ..Limits::of(glovebox_protocol::class::ResourceClass::Small)
        }
    }

    /// Makes a sandbox and puts the probes into it.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn subject(&self, limits: Limits) -> Result<Subject> {
        let subject = self.bare_subject(limits).await?;
        for (name, text) in PROBES {
            let name = FileName::from_bytes(format!("probes/{name}"))?;
            let client = &subject.client;
            client
                .put_bytes(&name, Bytes::from_static(text.as_bytes()))
                .await
                .with_context(|| format!("putting {name} into the sandbox"))?;
        }
        Ok(subject)
    }

    /// What a sandbox of this lab is asked to be.
    #[must_use]
    pub fn spec(&self, limits: Limits) -> SandboxSpec {
        SandboxSpec {
            id: SandboxId::new(),
            installation: self.installation,
            keys: vec![self.key.public()],
            image: None,
            limits,
            input_limits: InputLimits::default(),
            trust_domain: self.trust_domain.clone(),
            start: self.start,
            idle_limit_ms: None,
            is_unclaimed: false,
            hard_deadline_ms: None,
        }
    }

    /// Makes a sandbox with an empty workspace.
    ///
    /// # Errors
    /// When it cannot be made.
    pub async fn bare_subject(&self, limits: Limits) -> Result<Subject> {
        let spec = self.spec(limits.clone());
        let id = spec.id;
        self.runtime.create(spec.validate()?).await?;
        Ok(Subject {
            id,
            limits,
            client: self.client_of(id),
            lab: self.clone(),
        })
    }

    /// A client of the agent of a sandbox of this lab.
    #[must_use]
    pub fn client_of(&self, sandbox: SandboxId) -> AgentClient {
        let identity = Identity {
            key: Arc::clone(&self.key),
            installation: self.installation,
            sandbox,
        };
        if let Some(gateway) = &self.gateway {
            return gateway.agent(identity, None);
        }
        let runtime = Arc::clone(&self.runtime);
        AgentClient::new(identity, move || {
            let runtime = Arc::clone(&runtime);
            async move {
                let stream = runtime
                    .connect(sandbox)
                    .await
                    .map_err(std::io::Error::other)?;
                Ok(Box::new(stream) as Box<dyn ByteStream>)
            }
        })
    }

    /// The installation of the lab's sandboxes.
    #[must_use]
    pub const fn installation(&self) -> InstallationId {
        self.installation
    }

    /// The key that the lab's agents obey.
    #[must_use]
    pub fn key(&self) -> &SigningKey {
        &self.key
    }
}

/// A sandbox to attack from.
pub struct Subject {
    /// Which one.
    pub id: SandboxId,
    /// Its limits.
    pub limits: Limits,
    /// A client of its agent.
    pub client: AgentClient,
    lab: Lab,
}

impl Subject {
    /// Runs a probe program to its end.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn probe(&self, program: &str, arguments: &[&str]) -> Result<Ran> {
        self.start_probe(program, arguments).await?.to_end().await
    }

    /// Starts a probe program.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn start_probe(&self, program: &str, arguments: &[&str]) -> Result<Running> {
        self.start(probe_argv(program, arguments), BTreeMap::new(), LONG_MS)
            .await
    }

    /// Runs a program to its end, with environment and time limit.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn start(
        &self,
        argv: Vec<Argument>,
        env: BTreeMap<String, String>,
        time_limit_ms: u64,
    ) -> Result<Running> {
        let start = StartProcess {
            execution: ExecutionId::new(),
            argv,
            env,
            stdin: Stdin::Empty,
            time_limit_ms,
            output_limit_bytes: Some(64 * 1024 * 1024),
        };
        self.start_exactly(&start).await
    }

    /// Starts exactly this.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn start_exactly(&self, start: &StartProcess) -> Result<Running> {
        let execution = self
            .client
            .run(start)
            .await
            .with_context(|| format!("starting {:?}", start.argv))?;
        Ok(Running::new(execution, self.client.clone()))
    }

    /// Runs code in the kernel, which is started if there is none.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn kernel(&self, code: &str) -> Result<Ran> {
        self.start_in_kernel(code, LONG_MS).await?.to_end().await
    }

    /// Starts code in the kernel, which is started if there is none. A kernel that was asked for
    /// as a copy of a template has to be one: nothing is checked on another in silence.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn start_in_kernel(&self, code: &str, time_limit_ms: u64) -> Result<Running> {
        let info = self.client.start_kernel(&StartKernel::default()).await?;
        let wanted = self.lab.start;
        ensure!(
            info.start == Some(wanted),
            "the kernel was to start as {wanted:?} and did as {:?}: {:?}",
            info.start,
            info.last_end
        );
        let execute = Execute {
            execution: ExecutionId::new(),
            code: code.into(),
            time_limit_ms,
            output_limit_bytes: Execute::default_output_limit_bytes(),
            silent: false,
        };
        let execution = self.client.execute(&execute).await?;
        Ok(Running::in_kernel(execution, self.client.clone()))
    }

    /// Runs a probe program's attack in the kernel itself: its words are those of its command line.
    ///
    /// # Errors
    /// When the agent does not play along.
    pub async fn attack_in_kernel(&self, words: &[&str], time_limit_ms: u64) -> Result<Running> {
        let words = serde_json::to_string(words)?;
        let code = format!(
            "import sys\n\
             sys.path.insert(0, '{PROBE_FOLDER}')\n\
             import hostile\n\
             hostile.main({words})\n"
        );
        self.start_in_kernel(&code, time_limit_ms).await
    }

    /// Whether the agent answers, does work, and its workload can start processes: what has to be
    /// true after every attack.
    ///
    /// # Errors
    /// What is not true.
    pub async fn still_works(&self) -> Result<()> {
        let word = "still here";
        let argv = ["/bin/sh", "-c", "echo still here"].map(Argument::from);
        let running = self.start(argv.into(), BTreeMap::new(), LONG_MS).await?;
        let ran = running.to_end().await?;
        ensure!(
            String::from_utf8_lossy(&ran.stdout).trim() == word,
            "after the attack a program {}",
            ran.outcome
        );
        Ok(())
    }

    /// Ends the sandbox.
    ///
    /// # Errors
    /// When something of it is left.
    pub async fn remove(self) -> Result<()> {
        self.lab.runtime.remove(self.id).await?;
        Ok(())
    }
}

/// The command line of a probe program.
#[must_use]
pub fn probe_argv(program: &str, arguments: &[&str]) -> Vec<Argument> {
    let program = format!("{PROBE_FOLDER}/{program}");
    [PYTHON, program.as_str()]
        .iter()
        .chain(arguments)
        .map(|word| Argument::from(*word))
        .collect()
}
