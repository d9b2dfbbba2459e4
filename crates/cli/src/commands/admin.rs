//! `glovebox admin`: what whoever owns the machine can do to a server's data. It works on the
//! database, beside a server that runs or without one.

use std::io::BufRead as _;

use glovebox_protocol::error::ErrorCode;
use glovebox_server::app::App;
use glovebox_server::program::assemble;
use glovebox_server::reset::{Reset, ResetError, reset_secrets};
use glovebox_store::{Actor, KeyScope, StoreError};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::arguments::{AdminArguments, AdminCommand, AdminCommon, ApiKeyCommand};
use crate::environment::Environment;
use crate::failure::{Failure, shown};

/// Longest password that is read, in bytes.
const MAX_PASSWORD: u64 = 4096;

/// Does what is asked for and says what came of it.
pub(crate) async fn run(
    arguments: &AdminArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let actor = Actor::command_line(&format!("user id {}", environment.user_id));
    let (common, line, document) = match &arguments.command {
        AdminCommand::CreateAdmin {
            email,
            name,
            common,
            ..
        } => {
            let password = password()?;
            let app = app(common, environment).await?;
            let name = name.as_deref().unwrap_or(email);
            let user = app
                .create_system_admin(&actor, email, name, password)
                .await
                .map_err(|error| Failure::machine("making a system admin", error))?;
            let line = format!("{} is a system admin", user.email);
            (common, line, json!({ "id": user.id, "email": user.email }))
        }
        AdminCommand::ResetPassword { email, common, .. } => {
            let password = password()?;
            let app = app(common, environment).await?;
            let user = app
                .reset_password(&actor, email, password)
                .await
                .map_err(|error| Failure::machine("giving a user another password", error))?;
            let line = format!("{} has a new password and no sessions", user.email);
            (common, line, json!({ "id": user.id, "email": user.email }))
        }
        AdminCommand::ApiKey(ApiKeyCommand::Create {
            workspace,
            name,
            scopes,
            common,
        }) => {
            let scopes = scopes
                .iter()
                .map(|scope| parse(scope))
                .collect::<Result<_, _>>()?;
            let app = app(common, environment).await?;
            let (id, token) = app
                .create_service_key(&actor, workspace, name, scopes)
                .await
                .map_err(|error| Failure::machine("making an API key", error))?;
            let line = token.reveal().to_owned();
            let document = json!({ "id": id, "token": token.reveal() });
            (common, line, document)
        }
        AdminCommand::ResetSecrets { yes, common } => {
            let config = super::serve::config(&common.place, environment, "")?;
            let reset = reset_secrets(&config, &actor, *yes).await;
            let reset = reset.map_err(not_reset)?;
            (common, told(&reset), document(&reset))
        }
    };
    say(common, line, &document)
}

async fn app(common: &AdminCommon, environment: &Environment) -> Result<App, Failure> {
    let config = super::serve::config(&common.place, environment, "")?;
    assemble(config).await.map_err(super::serve::from_program)
}

/// What a reset has done, and what is left to do.
fn told(reset: &Reset) -> String {
    let mut text = format!(
        "a new master key is in {}; keep a copy of it in another place\n",
        shown(&reset.key)
    );
    if let Some(before) = &reset.key_before {
        text.push_str(&format!(
            "the one before is in {}: it opens the secrets of backups from before\n",
            shown(before)
        ));
    }
    if reset.forgotten.is_empty() {
        text.push_str("nothing has to be entered again\n");
    } else {
        let forgotten = reset.forgotten.join(", ");
        text.push_str(&format!("to be entered again: {forgotten}\n"));
    }
    text.push_str(&format!(
        "{} sandboxes have ended, for their agents obey the key before\n\
         start the server anew now, if it runs: it knows only what was before",
        reset.ended
    ));
    text
}

fn document(reset: &Reset) -> Value {
    json!({
        "master_key": shown(&reset.key),
        "master_key_before": reset.key_before.as_ref().map(shown),
        "forgotten": reset.forgotten,
        "ended_sandboxes": reset.ended,
    })
}

fn not_reset(error: ResetError) -> Failure {
    let doing = "making secrets anew";
    let fix = match &error {
        ResetError::NotNeeded { .. } => {
            Some("say --yes where it has to be another one all the same")
        }
        ResetError::Store(StoreError::MasterKey { .. }) => {
            Some("make it readable, or say --yes where it is lost")
        }
        _ => None,
    };
    match error {
        ResetError::Program(error) => super::serve::failed(doing, error),
        error => Failure::Machine {
            doing: doing.into(),
            fix: fix.map(Into::into),
            code: ErrorCode::Internal,
            cause: Some(error.into()),
        },
    }
}

fn parse(scope: &str) -> Result<KeyScope, Failure> {
    scope.parse().map_err(|_| {
        let all: Vec<_> = KeyScope::ALL.iter().map(|scope| scope.as_str()).collect();
        Failure::usage(format!(
            "`{scope}` is no scope; there are {}",
            all.join(", ")
        ))
    })
}

/// The first line of standard input.
fn password() -> Result<Zeroizing<String>, Failure> {
    let mut line = Zeroizing::new(String::new());
    let input = std::io::stdin().lock();
    std::io::Read::take(input, MAX_PASSWORD)
        .read_line(&mut line)
        .map_err(|error| Failure::machine("reading the password", error))?;
    let password = Zeroizing::new(line.trim_end_matches(['\r', '\n']).to_owned());
    if password.is_empty() {
        return Err(Failure::Input {
            problem: "standard input has no password".into(),
            fix: Some("pipe it in: printf %s PASSWORD | glovebox admin …".into()),
            cause: None,
        });
    }
    Ok(password)
}

pub(super) fn say(common: &AdminCommon, line: String, document: &Value) -> Result<(), Failure> {
    let text = if common.json {
        serde_json::to_string(document).map_err(|error| Failure::Machine {
            doing: "writing the answer".into(),
            fix: None,
            code: ErrorCode::Internal,
            cause: Some(error.into()),
        })?
    } else {
        line
    };
    super::print(&format!("{text}\n"))
}
