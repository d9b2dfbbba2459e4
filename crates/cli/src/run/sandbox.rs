//! The one sandbox of a run: made, talked to, and gone at the end.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use glovebox_client::{AgentClient, ByteStream, ClientError, Identity};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::SigningKey;
use glovebox_runtime::{Runtime as _, RuntimeError, SandboxSpec, SandboxState, Start};
use glovebox_runtime_embedded::{EmbeddedRuntime, Options};

use crate::failure::Failure;

/// How long a sandbox may live beyond its program's time limit, for copying in and out.
const BEYOND_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// How often, and how many times, the runtime is asked why a sandbox is gone.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_TIMES: u32 = 40;

/// The sandbox of a run, with the launcher that made it.
pub(crate) struct Sandbox {
    runtime: Arc<EmbeddedRuntime>,
    /// Which one it is.
    pub(crate) id: SandboxId,
    /// Its agent.
    pub(crate) client: AgentClient,
}

/// What a sandbox is to be.
pub(crate) struct Wanted {
    /// Where launcher, layers and sockets are, and which weaknesses were accepted.
    pub(crate) options: Options,
    /// Hard limits.
    pub(crate) limits: Limits,
    /// Longest that the program may run.
    pub(crate) time_limit: Duration,
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
        runtime: Arc<EmbeddedRuntime>,
        wanted: &Wanted,
        id: SandboxId,
    ) -> Result<Self, Failure> {
        let key = SigningKey::generate()
            .map_err(|error| Failure::machine("making a signing key", error))?;
        let deadline = Utc::now() + wanted.time_limit + BEYOND_TIME_LIMIT;
        let installation = wanted.options.installation;
        let spec = SandboxSpec {
            id,
            installation,
            keys: vec![key.public()],
            limits: wanted.limits.clone(),
            input_limits: InputLimits::default(),
            trust_domain: installation.to_string(),
            start: Start::Fresh,
            hard_deadline_ms: Some(deadline.timestamp_millis()),
        };
        let spec = spec
            .validate()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        runtime.create(spec).await.map_err(from_runtime)?;
        let identity = Identity {
            key: Arc::new(key),
            installation,
            sandbox: id,
        };
        let connecting = Arc::clone(&runtime);
        let client = AgentClient::new(identity, move || {
            let runtime = Arc::clone(&connecting);
            async move {
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
        let mut ask = tokio::time::interval(ASK_EVERY);
        for _ in 0..ASK_TIMES {
            ask.tick().await;
            match self.runtime.inspect(self.id).await {
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

/// Ends the launcher and waits until nothing of its sandboxes is left.
pub(crate) async fn end(runtime: Arc<EmbeddedRuntime>) -> Result<(), Failure> {
    match Arc::into_inner(runtime) {
        Some(runtime) => runtime.shut_down().await.map_err(from_runtime),
        // A connection still holds on to it; the launcher ends with this process.
        None => Ok(()),
    }
}

/// The folders and programs of this machine, as the embedded runtime wants them.
pub(crate) fn options(
    launcher: PathBuf,
    data: PathBuf,
    run: PathBuf,
    layers: Vec<String>,
    accept_weaker: Vec<glovebox_box::weakness::Weakness>,
) -> Options {
    Options {
        launcher,
        data,
        run,
        layers,
        installation: InstallationId::new(),
        root_range_start: glovebox_box::control::DEFAULT_ROOT_RANGE_START,
        accept_weaker,
    }
}

/// What a failed runtime means to the person.
pub(crate) fn from_runtime(error: RuntimeError) -> Failure {
    let (code, fix) = match &error {
        RuntimeError::Unsupported { what, fix, .. } => {
            let accept = format!("go without it: --accept-weaker={what}");
            let fix = match fix {
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
