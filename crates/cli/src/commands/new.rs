//! `glovebox key new` and `glovebox credential new`

use std::io::Write as _;

use glovebox_protocol::sign::{Credential, SigningKey};

use crate::arguments::{NewArguments, NewCommand};
use crate::failure::Failure;
use crate::secret;

/// Makes a signing key and prints its public half, for `GATEWAY_AGENT_KEYS`.
pub(crate) fn key(arguments: &NewArguments) -> Result<(), Failure> {
    let NewCommand::New { out } = &arguments.command;
    let (key, text) = SigningKey::generate_written()
        .map_err(|error| Failure::machine("making a signing key", error))?;
    secret::write(out, &text)?;
    print(&key.public())
}

/// Makes a credential and prints its short name. The file holds what `GATEWAY_CREDENTIALS` takes.
pub(crate) fn credential(arguments: &NewArguments) -> Result<(), Failure> {
    let NewCommand::New { out } = &arguments.command;
    let (credential, text) =
        Credential::generate().map_err(|error| Failure::machine("making a credential", error))?;
    secret::write(out, &text)?;
    print(&credential.id())
}

fn print(line: &impl std::fmt::Display) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}").map_err(|_| Failure::OutputGone)
}
