//! `glovebox gateway`

mod canary;

use std::io::Write as _;
use std::process::ExitCode;

use glovebox_client::{Fingerprint, GatewayAddress, Trust, present_certificate};
use glovebox_gateway::program::{self, ProgramError};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::gateway::{CheckStatus, Info, Preflight};
use serde::Serialize;

use crate::arguments::{AskArguments, GatewayArguments, GatewayCommand};
use crate::failure::Failure;
use crate::quantity::size;
use crate::run::from_client;
use crate::through;
use crate::words::for_terminal;

/// Does what needs no connection: runs this machine's gateway, or says its fingerprint. Nothing
/// where a gateway is to be asked.
pub(crate) fn here(arguments: &GatewayArguments) -> Option<Result<(), Failure>> {
    match &arguments.command {
        None => Some(program::run().map_err(from_program)),
        Some(GatewayCommand::Fingerprint { url: None }) => {
            let fingerprint = program::fingerprint().map_err(from_program);
            Some(fingerprint.and_then(|found| print(&[found.to_string()])))
        }
        Some(_) => None,
    }
}

/// What a gateway that does not start means to the person.
fn from_program(error: ProgramError) -> Failure {
    match error {
        ProgramError::Config(faults) => {
            let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
            Failure::Machine {
                doing: format!("reading the gateway's environment: {}", lines.join("; ")),
                fix: Some("the deployment guide lists the variables".into()),
                code: ErrorCode::Invalid,
                cause: None,
            }
        }
        error => Failure::machine("running the gateway", error),
    }
}

/// Asks a gateway. The status is that of what was found.
pub(crate) async fn ask(arguments: &GatewayArguments) -> Result<ExitCode, Failure> {
    match &arguments.command {
        Some(GatewayCommand::Fingerprint { url: Some(url) }) => fingerprint_of(url).await,
        Some(GatewayCommand::Info(ask)) => info(ask).await,
        Some(GatewayCommand::Preflight(ask)) => preflight(ask).await,
        Some(GatewayCommand::Canary(arguments)) => canary::run(arguments).await,
        // These ask nobody.
        None | Some(GatewayCommand::Fingerprint { url: None }) => Ok(ExitCode::SUCCESS),
    }
}

async fn fingerprint_of(url: &str) -> Result<ExitCode, Failure> {
    // Nobody is trusted here: what is printed is to be compared by a person.
    let anybody = Trust::pinned(Fingerprint::of(b""));
    let address = GatewayAddress::parse(url, Some(anybody), false);
    let address = address.map_err(|error| Failure::usage(error.to_string()))?;
    let GatewayAddress::Https { host, port, .. } = &address else {
        return Err(Failure::usage(format!("{address} shows no certificate")));
    };
    let shown = present_certificate(host, *port).await.map_err(|error| {
        Failure::machine(format!("asking {address} for its certificate"), error)
    })?;
    print(&[shown.to_string()])?;
    Ok(ExitCode::SUCCESS)
}

async fn info(ask: &AskArguments) -> Result<ExitCode, Failure> {
    let client = through::client(&ask.url, &ask.known)?;
    let info = client.info().await;
    let info = info.map_err(|error| from_client("asking the gateway what it is", error))?;
    if ask.json {
        print_document(&info)?;
    } else {
        print(&in_words(&info))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn in_words(info: &Info) -> Vec<String> {
    let mut lines = vec![
        format!("gateway       {} ({})", info.gateway, info.runtime),
        format!("version       {}, protocol {}", info.version, info.protocol),
        format!("installation  {}", info.installation),
    ];
    for credential in &info.credentials {
        let yours = if credential.is_yours { " (yours)" } else { "" };
        lines.push(format!("credential    {}{yours}", credential.id));
    }
    for key in &info.agent_keys {
        lines.push(format!("agent key     {key}"));
    }
    for image in &info.images {
        let is = image.digest.as_deref().unwrap_or("not present");
        lines.push(format!("image         {}: {is}", image.reference));
    }
    let budget = &info.budget;
    lines.push(format!(
        "in use        {} of {} sandboxes, {} of {}",
        budget.sandboxes,
        budget.max_sandboxes,
        size(budget.memory_bytes),
        size(budget.max_memory_bytes)
    ));
    lines
}

async fn preflight(ask: &AskArguments) -> Result<ExitCode, Failure> {
    let client = through::client(&ask.url, &ask.known)?;
    let preflight = client.preflight().await;
    let preflight =
        preflight.map_err(|error| from_client("asking the gateway about its host", error))?;
    if ask.json {
        print_document(&preflight)?;
    } else {
        print(&checks(&preflight))?;
    }
    Ok(match preflight.status() {
        CheckStatus::Fail => ExitCode::FAILURE,
        CheckStatus::Pass | CheckStatus::Warn => ExitCode::SUCCESS,
    })
}

fn checks(preflight: &Preflight) -> Vec<String> {
    let mut lines = Vec::new();
    for check in &preflight.checks {
        let mark = match check.status {
            CheckStatus::Pass => "pass",
            CheckStatus::Warn => "warn",
            CheckStatus::Fail => "FAIL",
        };
        lines.push(format!("{mark}  {}: {}", check.id, check.message));
        lines.extend(check.fix.iter().map(|fix| format!("      fix: {fix}")));
    }
    lines
}

fn print_document(document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Failure::machine("writing the answer down", error))?;
    writeln!(std::io::stdout(), "{text}").map_err(|_| Failure::OutputGone)
}

fn print(lines: &[String]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    lines
        .iter()
        .try_for_each(|line| writeln!(out, "{}", for_terminal(line)))
        .map_err(|_| Failure::OutputGone)
}
