//! `glovebox key` and `glovebox credential`

use std::io::Write as _;

use glovebox_protocol::sign::{Credential, SigningKey};

use crate::arguments::{CredentialArguments, CredentialCommand, KeyArguments, KeyCommand};
use crate::failure::Failure;
use crate::secret;

/// Makes a signing key, or reads one, and prints its public half, for `GATEWAY_AGENT_KEYS`.
pub(crate) fn key(arguments: &KeyArguments) -> Result<(), Failure> {
    let key = match &arguments.command {
        KeyCommand::New { out } => {
            let (key, text) = SigningKey::generate_written()
                .map_err(|error| Failure::machine("making a signing key", error))?;
            secret::write(out, &text)?;
            key
        }
        KeyCommand::Show { key } => secret::read(key)?,
    };
    print(&key.public())
}

/// Makes a credential and prints its short name. The file holds what `GATEWAY_CREDENTIALS` takes.
pub(crate) fn credential(arguments: &CredentialArguments) -> Result<(), Failure> {
    let CredentialCommand::New { out } = &arguments.command;
    let (credential, text) =
        Credential::generate().map_err(|error| Failure::machine("making a credential", error))?;
    secret::write(out, &text)?;
    print(&credential.id())
}

fn print(line: &impl std::fmt::Display) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}").map_err(|_| Failure::OutputGone)
}
