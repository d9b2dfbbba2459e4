//! Reaching a gateway: from the command line to a client.

use std::sync::Arc;

use glovebox_client::{GatewayAddress, GatewayClient, GatewayIdentity, InvalidAddress, Trust};
use glovebox_protocol::error::ErrorCode;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::SigningKey;

use crate::arguments::{KnownArguments, ThroughArguments};
use crate::failure::{Failure, shown, unreadable};
use crate::run::from_client;
use crate::secret;

/// A gateway to run something through.
pub(crate) struct Through {
    /// Its client.
    pub(crate) client: GatewayClient,
    /// The key that signs requests to sandboxes.
    pub(crate) key: Arc<SigningKey>,
    /// Which image was asked for.
    pub(crate) image: Option<String>,
}

impl Through {
    /// Reads it from the command line; nothing where the run is to be on this machine.
    pub(crate) fn of(arguments: &ThroughArguments) -> Result<Option<Self>, Failure> {
        let (Some(url), Some(key)) = (&arguments.gateway, &arguments.signing_key) else {
            return no_gateway(&arguments.known);
        };
        Ok(Some(Self {
            client: client(url, &arguments.known)?,
            key: Arc::new(secret::read(key)?),
            image: arguments.image.clone(),
        }))
    }
}

/// What names a gateway's properties without a gateway is a mistake, and would be a wrong feeling
/// of safety.
fn no_gateway(known: &KnownArguments) -> Result<Option<Through>, Failure> {
    let given = [
        ("--pin", known.pin.is_some()),
        ("--ca-bundle", known.ca_bundle.is_some()),
        ("--same-host", known.same_host),
        ("--credential-file", known.credential_file.is_some()),
        ("--installation", known.installation.is_some()),
    ];
    match given.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Failure::usage(format!("{option} goes with --gateway"))),
        None => Ok(None),
    }
}

/// The client of the gateway at an address.
pub(crate) fn client(url: &str, known: &KnownArguments) -> Result<GatewayClient, Failure> {
    let file = known.credential_file.as_ref();
    let file = file.ok_or_else(|| Failure::usage("--credential-file is missing"))?;
    let trust = match (known.pin, &known.ca_bundle) {
        (Some(pin), _) => Some(Trust::pinned(pin)),
        (None, Some(path)) => {
            let pem = fs_err::read(path).map_err(|error| unreadable(path, &error))?;
            let problem = || format!("cannot use {}", shown(path));
            Some(Trust::bundle(&pem).map_err(|error| Failure::input(problem(), error))?)
        }
        (None, None) => None,
    };
    let address = GatewayAddress::parse(url, trust, known.same_host);
    let address = address.map_err(|error| usage(&error))?;
    let identity = GatewayIdentity {
        credential: secret::read(file)?,
        installation: known.installation,
    };
    Ok(GatewayClient::new(identity, address))
}

fn usage(error: &InvalidAddress) -> Failure {
    let help = match error {
        InvalidAddress::Form(_) => "",
        InvalidAddress::Trust(_) => {
            "; give --pin FINGERPRINT, which `glovebox gateway fingerprint` prints on its machine"
        }
        InvalidAddress::Plain(_) => "; use https://, or --same-host if it is on this machine",
    };
    Failure::usage(format!("{error}{help}"))
}

/// Ends a sandbox, and returns when nothing of it is left. One that was never made is gone.
pub(crate) async fn end(client: &GatewayClient, id: SandboxId) -> Result<(), Failure> {
    match client.delete(id).await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some(ErrorCode::NotFound) => Ok(()),
        Err(error) => Err(from_client("ending the sandbox", error)),
    }
}
