//! The command line of the server and of what looks after it. Every setting can be given by the
//! environment too, under the name that `--help` shows, and by a file (`settings`).

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::quantity::parse_size;

/// What `glovebox serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArguments {
    /// Where to listen
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "GLOVEBOX_LISTEN",
        default_value = "127.0.0.1:8080"
    )]
    pub(crate) listen: SocketAddr,

    /// A certificate to speak TLS with, and those that it is signed by (PEM); read again when it
    /// changes
    #[arg(long, value_name = "FILE", env = "GLOVEBOX_TLS_CERT")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// The private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", env = "GLOVEBOX_TLS_KEY")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The address that people use, where it is another than the one listened at, or a program
    /// with TLS stands in front
    #[arg(long, value_name = "URL", env = "GLOVEBOX_PUBLIC_URL")]
    pub(crate) public_url: Option<String>,

    /// Addresses of programs in front whose word about the caller's address is taken
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "GLOVEBOX_TRUSTED_PROXIES",
        value_delimiter = ','
    )]
    pub(crate) trusted_proxies: Vec<IpAddr>,

    /// How many streams of events one caller may have open at once at this server process: all browsers
    /// of a person, or all programs with one key
    #[arg(long, value_name = "COUNT", env = "GLOVEBOX_MAX_CALLER_STREAMS", default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_caller_streams: u32,

    /// How many streams of events all callers may have open at once at this server process
    #[arg(long, value_name = "COUNT", env = "GLOVEBOX_MAX_STREAMS", default_value_t = 2000,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_streams: u32,

    /// Speak plain HTTP beyond this machine: passwords can then be read on the network
    #[arg(long, env = "GLOVEBOX_INSECURE_HTTP")]
    pub(crate) insecure_http: bool,

    /// `false` makes runtime profiles read-only; code execution can still be switched off
    #[arg(long, value_name = "BOOL", env = "SANDBOX_GUI_CONFIG", default_value_t = true,
        action = clap::ArgAction::Set)]
    pub(crate) sandbox_gui_config: bool,

    /// What runs the sandboxes of this machine. Whoever may use Docker's socket is root on it, and so
    /// is whoever takes over a server that may
    #[arg(long, value_name = "NAME", env = "GATEWAY_RUNTIME", value_enum,
        default_value_t = MachineRuntimeName::Embedded)]
    pub(crate) runtime: MachineRuntimeName,

    /// Docker's socket, with `--runtime docker`; /var/run/docker.sock unless set
    #[arg(long, value_name = "PATH", env = "GATEWAY_DOCKER_SOCKET")]
    pub(crate) docker_socket: Option<PathBuf>,

    /// How many sandboxes there may be on this machine at once; 50 unless set
    #[arg(long, value_name = "COUNT", env = "GATEWAY_MAX_SANDBOXES")]
    pub(crate) max_sandboxes: Option<u32>,

    /// How much memory they may use together, such as 8G; most of the machine's unless set
    #[arg(long, value_name = "SIZE", env = "GATEWAY_MAX_MEMORY", value_parser = parse_size)]
    pub(crate) max_memory: Option<u64>,

    /// Go without these protections where the machine cannot give them (`glovebox doctor` names
    /// them)
    #[arg(
        long,
        value_name = "NAMES",
        env = "GLOVEBOX_ACCEPT_WEAKER",
        default_value = ""
    )]
    pub(crate) accept_weaker: String,

    /// How it works and what it tells
    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// Where its data are
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}

/// What can run the sandboxes of a server's own machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum MachineRuntimeName {
    /// Boxes of the machine's own, without a container engine
    Embedded,
    /// Containers of a Docker engine
    Docker,
}

/// What a server and a worker take alike.
#[derive(Debug, Args)]
pub(crate) struct WorkArguments {
    /// The queues that it works on; `none` leaves those of a server to `glovebox worker`
    #[arg(
        long,
        value_name = "NAMES",
        env = "GLOVEBOX_QUEUES",
        value_delimiter = ',',
        default_values = ["sandbox", "preview"]
    )]
    pub(crate) queues: Vec<String>,

    /// `false` forces code execution off whatever the console says
    #[arg(long, value_name = "BOOL", env = "SANDBOX_ENABLED", default_value_t = true,
        action = clap::ArgAction::Set)]
    pub(crate) sandbox_enabled: bool,

    /// What the log tells: error, warn, info, debug or trace, also for parts of the program
    #[arg(
        long,
        value_name = "FILTER",
        env = "GLOVEBOX_LOG",
        default_value = "info"
    )]
    pub(crate) log: String,

    /// Where to serve metrics to whoever asks, for Prometheus; nowhere unless set
    #[arg(long, value_name = "ADDRESS", env = "GLOVEBOX_METRICS_LISTEN")]
    pub(crate) metrics_listen: Option<SocketAddr>,

    /// For how many days after the end of a sandbox it is kept what ran in it; what chat shows and
    /// what was saved stays as long as thread and file do
    #[arg(long, value_name = "DAYS", env = "GLOVEBOX_HISTORY_DAYS", default_value_t = 90,
        value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) history_days: u32,
}

/// What `glovebox worker` takes.
#[derive(Debug, Args)]
pub(crate) struct WorkerArguments {
    /// How it works and what it tells
    #[command(flatten)]
    pub(crate) work: WorkArguments,

    /// Where its data are
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}

/// Where a server's data are.
#[derive(Debug, Clone, Args)]
pub(crate) struct PlaceArguments {
    // Read by `settings`, before there are arguments.
    /// Read settings from this file; what is said here or by the environment wins
    #[arg(long, value_name = "FILE", env = "GLOVEBOX_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// The data folder, instead of the usual one
    #[arg(long, value_name = "DIR", env = "GLOVEBOX_DATA")]
    pub(crate) data: Option<PathBuf>,

    /// The folder of the server's own data, instead of `server` in the data folder
    #[arg(long, value_name = "DIR", env = "GLOVEBOX_SERVER_DATA")]
    pub(crate) server_data: Option<PathBuf>,

    /// The database: sqlite:///PATH or postgres://…; a file in the data folder where it is not
    /// given
    #[arg(
        long,
        value_name = "URL",
        env = "GLOVEBOX_DATABASE",
        hide_env_values = true
    )]
    pub(crate) database: Option<String>,
}

/// What `glovebox backup` takes.
#[derive(Debug, Args)]
#[command(after_help = BACKUP_DETAILS)]
pub(crate) struct BackupArguments {
    /// The new file that everything goes into; only you can read it
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,

    /// How it is answered, and where the data are
    #[command(flatten)]
    pub(crate) common: AdminCommon,
}

const BACKUP_DETAILS: &str = "\
It works while the server runs. The master key is not in the file, and neither are sessions: keep
a copy of the key in another place.";

/// What `glovebox restore` takes.
#[derive(Debug, Args)]
#[command(after_help = RESTORE_DETAILS)]
pub(crate) struct RestoreArguments {
    /// A file that `glovebox backup` has written
    #[arg(long, value_name = "FILE")]
    pub(crate) from: PathBuf,

    /// How it is answered, and where the data go
    #[command(flatten)]
    pub(crate) common: AdminCommon,
}

const RESTORE_DETAILS: &str = "\
Everything is restored or nothing, and only into an empty database: SQLite or PostgreSQL, whatever
the backup was made of. Restore only what you have made: it says who may do what.";

/// What `glovebox admin` takes.
#[derive(Debug, Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct AdminArguments {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: AdminCommand,
}

/// What can be done to a server's data from its machine.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Make a system admin
    CreateAdmin {
        /// With which it signs in
        #[arg(long, value_name = "ADDRESS")]
        email: String,
        /// What others see; the address where it is not given
        #[arg(long)]
        name: Option<String>,
        /// Read the password from standard input, up to the first line end
        #[arg(long, required = true)]
        password_stdin: bool,
        /// How it is answered, and where the data are
        #[command(flatten)]
        common: AdminCommon,
    },
    /// Give a user another password, and end all its sessions
    ResetPassword {
        /// With which it signs in
        #[arg(long, value_name = "ADDRESS")]
        email: String,
        /// Read the password from standard input, up to the first line end
        #[arg(long, required = true)]
        password_stdin: bool,
        /// How it is answered, and where the data are
        #[command(flatten)]
        common: AdminCommon,
    },
    /// Keys of services
    #[command(subcommand)]
    ApiKey(ApiKeyCommand),
    /// Make a new master key where the one before is lost, and forget what only it could open
    ResetSecrets {
        /// Do it also where the present master key opens everything, or cannot be read
        #[arg(long)]
        yes: bool,
        /// How it is answered, and where the data are
        #[command(flatten)]
        common: AdminCommon,
    },
}

/// What can be done with keys.
#[derive(Debug, Subcommand)]
pub(crate) enum ApiKeyCommand {
    /// Make a key for a service, and print it: it is not to be had again
    Create {
        /// The name of the workspace that it is for
        #[arg(long)]
        workspace: String,
        /// What people call it
        #[arg(long)]
        name: String,
        /// What it may be used for; everything that runs code where it is not given
        #[arg(
            long,
            value_delimiter = ',',
            default_value = "code_execution:run,files:read,files:write,artifacts:read"
        )]
        scopes: Vec<String>,
        /// How it is answered, and where the data are
        #[command(flatten)]
        common: AdminCommon,
    },
}

/// What all of them take.
#[derive(Debug, Clone, Args)]
pub(crate) struct AdminCommon {
    /// Print one JSON document instead of a line
    #[arg(long)]
    pub(crate) json: bool,

    /// Where the data are
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}
