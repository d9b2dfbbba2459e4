//! The one sandbox of a run: made, talked to, and gone at the end. On this machine, or behind a
//! gateway.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chrono::Utc;
use glovebox_client::{AgentClient, ByteStream, ClientError, GatewayClient, Identity};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::{self, CreateSandbox};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::{
    InvalidSpec, Runtime as _, RuntimeError, SandboxSpec, SandboxState, Start, ValidatedSpec,
};
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};

use crate::failure::Failure;
use crate::through::Through;

/// How long making a sandbox may take, in milliseconds.
const START_LIMIT_MS: u64 = 90_000;

/// How long a sandbox may live beyond its program's time limit, for copying in and out.
const BEYOND_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// How often, and how many times, the runtime is asked why a sandbox is gone.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_TIMES: u32 = 40;

/// Who made a sandbox, and knows how it does.
enum Maker {
    /// The launcher of this run. Whoever ends it need not wait for this.
    Launcher(Weak<EmbeddedRuntime>),
    /// A gateway.
    Gateway(GatewayClient),
}

/// The sandbox of a run.
pub(crate) struct Sandbox {
    maker: Maker,
    /// Which one it is.
    pub(crate) id: SandboxId,
    /// Its agent.
    pub(crate) client: AgentClient,
}

/// What a sandbox is to be, and the key that its agent obeys.
pub(crate) struct Wanted {
    spec: ValidatedSpec,
    key: Arc<SigningKey>,
}

impl Wanted {
    /// A sandbox with these limits for a program that runs for `time_limit` at most, on this
    /// machine, with a key of its own.
    pub(crate) fn here(limits: Limits, time_limit: Duration) -> Result<Self, Failure> {
        let key = SigningKey::generate()
            .map_err(|error| Failure::machine("making a signing key", error))?;
        Self::new(limits, time_limit, InstallationId::new(), Arc::new(key))
    }

    /// The same behind a gateway of `installation`, which knows the key.
    pub(crate) fn new(
        limits: Limits,
        time_limit: Duration,
        installation: InstallationId,
        key: Arc<SigningKey>,
    ) -> Result<Self, Failure> {
        let deadline = Utc::now() + time_limit + BEYOND_TIME_LIMIT;
        let spec = SandboxSpec {
            id: SandboxId::new(),
            installation,
            keys: vec![key.public()],
            image: None,
            limits,
            input_limits: InputLimits::default(),
            // Whoever holds the key is one person, or one team.
            trust_domain: key.id().to_string(),
            // A template pays from its second copy on. On this machine there is one sandbox, and
            // its launcher ends with it: a kernel of its own is there sooner, and a script needs
            // none. A gateway is asked for the same.
            start: Start::Fresh,
            idle_limit_ms: None,
            is_unclaimed: false,
            hard_deadline_ms: Some(deadline.timestamp_millis()),
        };
        let spec = spec.validate().map_err(|error| out_of_range(&error))?;
        Ok(Self { spec, key })
    }

    /// The sandbox's id.
    pub(crate) fn id(&self) -> SandboxId {
        self.spec.get().id
    }

    /// The installation that this run is.
    pub(crate) fn installation(&self) -> InstallationId {
        self.spec.get().installation
    }
}

fn out_of_range(error: &InvalidSpec) -> Failure {
    let option = match error.field {
        "memory_bytes" => "--memory",
        "workspace_bytes" | "file_size_bytes" => "--disk",
        field => field,
    };
    Failure::usage(format!("{option} must be {}", error.must))
}

#[cfg(test)]
impl Sandbox {
    /// One whose agent is played.
    pub(crate) const fn played(
        runtime: Weak<EmbeddedRuntime>,
        id: SandboxId,
        client: AgentClient,
    ) -> Self {
        Self {
            maker: Maker::Launcher(runtime),
            id,
            client,
        }
    }
}

impl Sandbox {
    /// Starts a launcher. Dropping what is returned ends it and everything that it made.
    pub(crate) async fn launcher(options: Options) -> Result<Arc<EmbeddedRuntime>, Failure> {
        let runtime = EmbeddedRuntime::start(options)
            .await
            .map_err(from_runtime)?;
        Ok(Arc::new(runtime))
    }

    /// Makes the sandbox and waits until its agent answers.
    pub(crate) async fn make(
        runtime: &Arc<EmbeddedRuntime>,
        wanted: Wanted,
    ) -> Result<Self, Failure> {
        let identity = Identity {
            installation: wanted.installation(),
            sandbox: wanted.id(),
            key: wanted.key,
        };
        let id = identity.sandbox;
        let made = runtime.create(wanted.spec).await.map_err(from_runtime)?;
        let runtime = Arc::downgrade(runtime);
        let connecting = Weak::clone(&runtime);
        let client = AgentClient::new(identity, move || {
            let runtime = connecting.upgrade();
            async move {
                let runtime = runtime.ok_or(std::io::ErrorKind::NotConnected)?;
                let stream = runtime.connect(id).await.map_err(std::io::Error::other)?;
                Ok(Box::new(stream) as Box<dyn ByteStream>)
            }
        })
        .knowing(made.agent_epoch);
        Ok(Self {
            maker: Maker::Launcher(runtime),
            id,
            client,
        })
    }

    /// Has a gateway make the sandbox.
    pub(crate) async fn make_through(through: &Through, wanted: Wanted) -> Result<Self, Failure> {
        let Wanted { spec, key } = wanted;
        let spec = spec.into_inner();
        let identity = Identity {
            installation: spec.installation,
            sandbox: spec.id,
            key,
        };
        let id = spec.id;
        let create = CreateSandbox {
            id,
            installation: spec.installation,
            image: through.image.clone(),
            limits: spec.limits,
            input_limits: spec.input_limits,
            trust_domain: spec.trust_domain,
            start: spec.start,
            idle_limit_ms: spec.idle_limit_ms,
            hard_deadline_ms: spec.hard_deadline_ms.unwrap_or(i64::MAX),
            start_limit_ms: START_LIMIT_MS,
            is_unclaimed: false,
        };
        let gateway = &through.client;
        let made = gateway.create(&create).await;
        let made = made.map_err(|error| from_client("making a sandbox", error))?;
        Ok(Self {
            client: gateway.agent(identity, made.agent_epoch),
            maker: Maker::Gateway(gateway.clone()),
            id,
        })
    }

    /// Why the sandbox is gone, in words. It may take a moment until its maker knows.
    pub(crate) async fn why_gone(&self) -> String {
        let mut ask = tokio::time::interval(ASK_EVERY);
        for _ in 0..ASK_TIMES {
            ask.tick().await;
            match self.maker.end_reason(self.id).await {
                Ok(None) => {}
                Ok(Some(reason)) | Err(reason) => return reason,
            }
        }
        "and nobody knows why".into()
    }
}

impl Maker {
    /// Why a sandbox has ended, if it has; or why that cannot be said.
    async fn end_reason(&self, id: SandboxId) -> Result<Option<String>, String> {
        match self {
            Self::Launcher(runtime) => {
                let runtime = runtime.upgrade().ok_or("with its launcher")?;
                let sandbox = runtime.inspect(id).await;
                match sandbox.map_err(|error| error.to_string())?.state {
                    SandboxState::Ended { reason } => Ok(Some(reason)),
                    SandboxState::Running => Ok(None),
                }
            }
            Self::Gateway(gateway) => match gateway.sandbox(id).await {
                Ok(view) => match view.state {
                    gateway::SandboxState::Ended { reason, .. } => Ok(Some(reason)),
                    _ => Ok(None),
                },
                Err(error) => Err(from_client("asking the gateway", error).sentence()),
            },
        }
    }
}

/// Ends the launcher and waits until it says that nothing of its sandboxes is left, whoever
/// still holds on to the runtime.
pub(crate) async fn end(runtime: &EmbeddedRuntime) -> Result<(), Failure> {
    runtime.shut_down().await.map_err(from_runtime)
}

/// What a failed runtime means to the person.
pub(crate) fn from_runtime(error: RuntimeError) -> Failure {
    let (code, fix) = match &error {
        RuntimeError::Unsupported { what, fix, .. } => {
            let accept = format!("go without it: --accept-weaker={what}");
            let fix = match fix {
                Some(fix) if fix.contains("--accept-weaker") => fix.clone(),
                Some(fix) => format!("{fix}; or {accept}"),
                None => accept,
            };
            (ErrorCode::CapabilityMissing, Some(fix))
        }
        RuntimeError::Unavailable { fix, .. } => (
            ErrorCode::RuntimeUnavailable,
            Some(
                fix.clone()
                    .unwrap_or_else(|| "`glovebox doctor` says what this machine lacks".into()),
            ),
        ),
        RuntimeError::Exhausted(_) => (ErrorCode::Exhausted, None),
        RuntimeError::Invalid(_) => (ErrorCode::Invalid, None),
        RuntimeError::NotFound { .. } => (ErrorCode::SandboxGone, None),
        RuntimeError::AlreadyExists { .. } | RuntimeError::Internal { .. } => {
            (ErrorCode::Internal, None)
        }
    };
    Failure::Machine {
        doing: "making a sandbox".into(),
        fix,
        code,
        cause: Some(error.into()),
    }
}

/// What a failed call of an agent or a gateway means to the person.
pub(crate) fn from_client(doing: impl Into<String>, error: ClientError) -> Failure {
    let fix = match &error {
        ClientError::Refused(body) if body.code == ErrorCode::DiskFull => body
            .fix
            .clone()
            .or_else(|| Some("make more room with --disk".into())),
        ClientError::Refused(body) => body.fix.clone(),
        _ => None,
    };
    Failure::Machine {
        doing: doing.into(),
        fix,
        code: error.code().unwrap_or(ErrorCode::Internal),
        cause: Some(error.into()),
    }
}
