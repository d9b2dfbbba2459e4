//! `glovebox gateway canary`

use std::process::ExitCode;
use std::sync::Arc;

use glovebox_client::canary;
use glovebox_protocol::agent_config::Start;
use glovebox_protocol::gateway::{CanaryReport, Expected, Verdict};
use glovebox_protocol::sign::SigningKey;

use crate::arguments::CanaryArguments;
use crate::failure::Failure;
use crate::run::from_client;
use crate::{secret, through};

/// Lets a throwaway sandbox try what none may reach.
pub(super) async fn run(arguments: &CanaryArguments) -> Result<ExitCode, Failure> {
    let ask = &arguments.ask;
    let client = through::client(&ask.url, &ask.known)?;
    let key = Arc::new(secret::read::<SigningKey>(&arguments.signing_key)?);
    let installation = client.installation().await;
    let installation =
        installation.map_err(|error| from_client("asking the gateway who it is", error))?;
    let report = match canary::prove(&client, &key, installation).await {
        Ok(report) => report,
        Err(canary::CanaryError::Client(error)) => {
            return Err(from_client("trying what a sandbox can reach", error));
        }
        Err(error) => {
            return Err(Failure::machine("trying what a sandbox can reach", error));
        }
    };
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
