//! `glovebox gateway canary`

use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::Utc;
use glovebox_client::{AgentClient, ClientError, GatewayClient, Identity, canary};
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::gateway::{CanaryReport, CreateSandbox, Expected, Verdict};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::limits::{InputLimits, Limits};
use glovebox_protocol::sign::SigningKey;

use crate::arguments::CanaryArguments;
use crate::failure::Failure;
use crate::run::from_client;
use crate::{secret, through};

/// How long a throwaway sandbox may be there at most.
const LIFE: Duration = Duration::from_secs(600);

/// How long making one may take, in milliseconds.
const START_LIMIT_MS: u64 = 90_000;

/// Room for what attempts write.
const WORKSPACE_BYTES: u64 = 64 * 1024 * 1024;

/// Lets a throwaway sandbox try what none may reach.
pub(super) async fn run(arguments: &CanaryArguments) -> Result<ExitCode, Failure> {
    let ask = &arguments.ask;
    let client = through::client(&ask.url, &ask.known)?;
    let key = Arc::new(secret::read::<SigningKey>(&arguments.signing_key)?);
    let installation = client.installation().await;
    let installation =
        installation.map_err(|error| from_client("asking the gateway who it is", error))?;
    let pair = Pair {
        client,
        key,
        installation,
        ids: Mutex::default(),
    };
    let report = pair.report().await;
    let gone = pair.take_away().await;
    let report = report?;
    gone?;
    if ask.json {
        super::print_document(&report)?;
    } else {
        super::print(&in_words(&report))?;
    }
    let is_fine = report.wrong().next().is_none();
    Ok(if is_fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Throwaway sandboxes: one of each start that tries, and one that they try to reach.
struct Pair {
    client: GatewayClient,
    key: Arc<SigningKey>,
    installation: InstallationId,
    ids: Mutex<Vec<SandboxId>>,
}

impl Pair {
    async fn report(&self) -> Result<CanaryReport, Failure> {
        let doing = "trying what a sandbox can reach";
        canary::run_starts(&self.client, async |start| self.make(start).await)
            .await
            .map_err(|error| match error {
                canary::CanaryError::Client(error) => from_client(doing, error),
                error => Failure::machine(doing, error),
            })
    }

    async fn make(&self, start: Start) -> Result<AgentClient, ClientError> {
        let id = SandboxId::new();
        self.ids().push(id);
        let limits = Limits {
            workspace_bytes: WORKSPACE_BYTES,
            ..Limits::of(ResourceClass::Small)
        };
        let wanted = CreateSandbox {
            id,
            installation: self.installation,
            image: None,
            limits,
            input_limits: InputLimits::default(),
            trust_domain: id.to_string(),
            start,
            idle_limit_ms: None,
            hard_deadline_ms: (Utc::now() + LIFE).timestamp_millis(),
            start_limit_ms: START_LIMIT_MS,
            is_unclaimed: false,
        };
        let made = self.client.create(&wanted).await?;
        let identity = Identity {
            key: Arc::clone(&self.key),
            installation: self.installation,
            sandbox: id,
        };
        Ok(self.client.agent(identity, made.agent_epoch))
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, Vec<SandboxId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take_away(&self) -> Result<(), Failure> {
        let mut first = Ok(());
        let ids = std::mem::take(&mut *self.ids());
        for id in ids {
            first = first.and(through::end(&self.client, id).await);
        }
        first
    }
}

fn in_words(report: &CanaryReport) -> Vec<String> {
    let wrong: Vec<_> = report.wrong().map(|(_, result)| result).collect();
    let mut lines: Vec<_> = report
        .results
        .iter()
        .map(|(target, result)| {
            let verdict = match result.verdict {
                Verdict::Blocked => "BLOCKED",
                Verdict::Open => "OPEN   ",
            };
            let mark = if wrong.contains(&result) {
                "  WRONG"
            } else {
                ""
            };
            let start = match result.start {
                Start::Fresh => "fresh",
                Start::Template => "template",
            };
            let millis = result.took_us.div_ceil(1000);
            format!(
                "{verdict} {} ({start}): {} ({millis} ms){mark}",
                target.id, result.how
            )
        })
        .collect();
    let controls = report.results.iter();
    let controls = controls.filter(|(target, _)| target.expected == Expected::Open);
    lines.push(match wrong.len() {
        0 => format!(
            "nothing got out; {} of {} were controls, and open as they have to be",
            controls.count(),
            report.results.len()
        ),
        count => format!("{count} of {} came out wrong", report.results.len()),
    });
    lines
}
