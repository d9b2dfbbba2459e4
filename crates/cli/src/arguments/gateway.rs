//! The command line of what has to do with gateways.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use glovebox_client::Fingerprint;
use glovebox_protocol::ids::InstallationId;

/// Which gateway, and how it and this command know each other.
#[derive(Debug, Args)]
#[command(next_help_heading = "Through a gateway")]
pub(crate) struct ThroughArguments {
    /// The gateway, as `https://HOST[:PORT]` or unix:/PATH
    #[arg(long, value_name = "URL", requires_all = ["credential_file", "signing_key"])]
    pub(crate) gateway: Option<String>,

    /// How the gateway is known for the right one, and who asks it
    #[command(flatten)]
    pub(crate) known: KnownArguments,

    /// The key that signs requests to the sandbox; `glovebox key new` makes one
    #[arg(long, value_name = "FILE", requires = "gateway")]
    pub(crate) signing_key: Option<PathBuf>,

    /// The image of the sandbox, instead of the first one that the gateway allows
    #[arg(long, value_name = "IMAGE", requires = "gateway")]
    pub(crate) image: Option<String>,
}

/// How a gateway is known for the right one, and who asks it.
#[derive(Debug, Args)]
pub(crate) struct KnownArguments {
    /// The fingerprint that the gateway printed at its first start
    #[arg(long, value_name = "FINGERPRINT", conflicts_with_all = ["ca_bundle", "same_host"])]
    pub(crate) pin: Option<Fingerprint>,

    /// Certificates (PEM) one of which certifies the gateway, instead of a fingerprint
    #[arg(long, value_name = "FILE", conflicts_with = "same_host")]
    pub(crate) ca_bundle: Option<PathBuf>,

    /// Accept http://: the gateway is on this machine, and whoever can read its network may read
    /// what is sent
    #[arg(long)]
    pub(crate) same_host: bool,

    /// A credential that the gateway accepts; `glovebox credential new` makes one
    #[arg(long, value_name = "FILE")]
    pub(crate) credential_file: Option<PathBuf>,

    /// The installation that the gateway has to belong to; any, where it is not given
    #[arg(long, value_name = "ID")]
    pub(crate) installation: Option<InstallationId>,
}

const GATEWAY_DETAILS: &str = "\
Without a subcommand it runs a gateway until a signal ends it. The gateway is configured by
environment variables that begin with GATEWAY_; the deployment guide lists them.";

/// What `glovebox gateway` takes.
#[derive(Debug, Args)]
#[command(after_help = GATEWAY_DETAILS)]
pub(crate) struct GatewayArguments {
    /// What to do instead of running one
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
}

/// What `glovebox gateway` can do beside running one.
#[derive(Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Print the fingerprint of this machine's gateway, or of the one at URL
    Fingerprint {
        /// A gateway, as `https://HOST[:PORT]`; nothing is sent to it
        #[arg(value_name = "URL")]
        url: Option<String>,
    },
    /// Print what a gateway says of itself
    Info(AskArguments),
    /// Print what a gateway finds when it looks at its host
    Preflight(AskArguments),
    /// Prove with a throwaway sandbox that sandboxes can reach nothing
    Canary(CanaryArguments),
}

/// What asking a gateway takes.
#[derive(Debug, Args)]
pub(crate) struct AskArguments {
    /// The gateway, as `https://HOST[:PORT]` or unix:/PATH
    #[arg(value_name = "URL")]
    pub(crate) url: String,

    /// How the gateway is known for the right one, and who asks it
    #[command(flatten)]
    pub(crate) known: KnownArguments,

    /// Print the JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// What `glovebox gateway canary` takes.
#[derive(Debug, Args)]
pub(crate) struct CanaryArguments {
    /// Whom to ask
    #[command(flatten)]
    pub(crate) ask: AskArguments,

    /// The key that signs requests to the sandbox
    #[arg(long, value_name = "FILE")]
    pub(crate) signing_key: PathBuf,
}

/// What `glovebox key` takes.
#[derive(Debug, Args)]
pub(crate) struct KeyArguments {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

/// What `glovebox key` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a new one, and print its public half for `GATEWAY_AGENT_KEYS`
    New {
        /// Where it goes; nothing may be there yet
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
    /// Print the public half of one
    Show {
        /// The key
        #[arg(value_name = "FILE")]
        key: PathBuf,
    },
}

/// What `glovebox credential` takes.
#[derive(Debug, Args)]
pub(crate) struct CredentialArguments {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: CredentialCommand,
}

/// What `glovebox credential` can do.
#[derive(Debug, Subcommand)]
pub(crate) enum CredentialCommand {
    /// Make a new one, and print the short name by which gateways list it
    New {
        /// Where it goes; nothing may be there yet
        #[arg(long, value_name = "FILE")]
        out: PathBuf,
    },
}
