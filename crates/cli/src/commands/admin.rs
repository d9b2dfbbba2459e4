//! `glovebox admin`: what whoever owns the machine can do to a server's data. It works on the
//! database, beside a server that runs or without one.

use std::io::BufRead as _;

use glovebox_protocol::error::ErrorCode;
use glovebox_server::app::App;
use glovebox_server::program::assemble;
use glovebox_store::{Actor, KeyScope};
use serde_json::{Value, json};
use zeroize::Zeroizing;

use crate::arguments::{AdminArguments, AdminCommand, AdminCommon, ApiKeyCommand};
use crate::environment::Environment;
use crate::failure::Failure;

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
    };
    say(common, line, &document)
}

async fn app(common: &AdminCommon, environment: &Environment) -> Result<App, Failure> {
    let config = super::serve::config(&common.place, environment, "")?;
    assemble(config).await.map_err(super::serve::from_program)
}

fn parse(scope: &str) -> Result<KeyScope, Failure> {
    scope.parse().map_err(|_| {
        let all: Vec<_> = KeyScope::ALL.iter().map(|scope| scope.as_str()).collect();
        Failure::Usage(format!(
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

fn say(common: &AdminCommon, line: String, document: &Value) -> Result<(), Failure> {
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
