//! The one sandbox of a run: made, talked to, and gone at the end.

use std::sync::{Arc, Weak};
use std::time::Duration;

use chrono::Utc;
use glovebox_client::{AgentClient, ByteStream, ClientError, Identity};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::{
    InvalidSpec, Runtime as _, RuntimeError, SandboxSpec, SandboxState, Start, ValidatedSpec,
};
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};

use crate::failure::Failure;

/// How long a sandbox may live beyond its program's time limit, for copying in and out.
const BEYOND_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// How often, and how many times, the runtime is asked why a sandbox is gone.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_TIMES: u32 = 40;

/// The sandbox of a run, with the launcher that made it.
pub(crate) struct Sandbox {
    /// Whoever ends the launcher need not wait for this.
    runtime: Weak<EmbeddedRuntime>,
    /// Which one it is.
    pub(crate) id: SandboxId,
    /// Its agent.
    pub(crate) client: AgentClient,
}

/// What a sandbox is to be, and the key that its agent obeys.
pub(crate) struct Wanted {
    spec: ValidatedSpec,
    key: SigningKey,
}

impl Wanted {
    /// A sandbox with these limits for a program that runs for `time_limit` at most.
    pub(crate) fn new(limits: Limits, time_limit: Duration) -> Result<Self, Failure> {
        let key = SigningKey::generate()
            .map_err(|error| Failure::machine("making a signing key", error))?;
        let deadline = Utc::now() + time_limit + BEYOND_TIME_LIMIT;
        let installation = InstallationId::new();
        let spec = SandboxSpec {
            id: SandboxId::new(),
            installation,
            keys: vec![key.public()],
            image: None,
            limits,
            input_limits: InputLimits::default(),
            trust_domain: installation.to_string(),
            // A template pays from its second copy on. Here there is one sandbox, and its launcher
            // ends with it: a kernel of its own is there sooner, and a script needs none.
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
    Failure::Usage(format!("{option} must be {}", error.must))
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
            runtime,
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
            key: Arc::new(wanted.key),
        };
        let id = identity.sandbox;
        runtime.create(wanted.spec).await.map_err(from_runtime)?;
        let runtime = Arc::downgrade(runtime);
        let connecting = Weak::clone(&runtime);
        let client = AgentClient::new(identity, move || {
            let runtime = connecting.upgrade();
            async move {
                let runtime = runtime.ok_or(std::io::ErrorKind::NotConnected)?;
                let stream = runtime.connect(id).await.map_err(std::io::Error::other)?;
                Ok(Box::new(stream) as Box<dyn ByteStream>)
            }
        });
        Ok(Self {
            runtime,
            id,
            client,
        })
    }

    /// Why the sandbox is gone, in words. It may take a moment until the runtime knows.
    pub(crate) async fn why_gone(&self) -> String {
        let Some(runtime) = self.runtime.upgrade() else {
            return "with its launcher".into();
        };
        let mut ask = tokio::time::interval(ASK_EVERY);
        for _ in 0..ASK_TIMES {
            ask.tick().await;
            match runtime.inspect(self.id).await {
                Ok(sandbox) => {
                    if let SandboxState::Ended { reason } = sandbox.state {
                        return reason;
                    }
                }
                Err(error) => return error.to_string(),
            }
        }
        "and nobody knows why".into()
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

/// What a failed call of the agent means to the person.
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
