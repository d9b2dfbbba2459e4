//! `glovebox serve`, `glovebox worker` and `glovebox migrate`

use std::path::PathBuf;

use glovebox_protocol::error::ErrorCode;
use glovebox_server::program::{ProgramError, Server, open_store};
use glovebox_server::{
    Config, GatewayProgram, LostLines, MachineRuntime, PublicUrl, Queue, StreamLimits, TlsFiles,
};
use glovebox_store::StoreError;

use crate::arguments::{MachineRuntimeName, PlaceArguments, ServeArguments, WorkerArguments};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::installation;
use crate::log;
use crate::signals::Signals;

/// Runs a server until a signal ends it.
pub(crate) async fn serve(
    arguments: &ServeArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let log = log::begin(&arguments.work.log)?;
    let runtime = runtime(arguments)?;
    // Containers stand on their image.
    if runtime == MachineRuntime::Embedded {
        super::setup::ensure(arguments.place.data.clone(), environment).await?;
    }
    let public_url = arguments.public_url.as_deref().map(PublicUrl::parse);
    let mut config = Config {
        listen: arguments.listen,
        metrics_listen: arguments.work.metrics_listen,
        history_days: arguments.work.history_days,
        streams: StreamLimits {
            per_caller: arguments.max_caller_streams,
            in_all: arguments.max_streams,
        },
        tls: tls(arguments)?,
        public_url: public_url.transpose().map_err(|error| usage(&error))?,
        trusted_proxies: arguments.trusted_proxies.clone(),
        insecure_http: arguments.insecure_http,
        sandbox_enabled: arguments.work.sandbox_enabled,
        sandbox_gui_config: arguments.sandbox_gui_config,
        queues: queues(&arguments.work.queues)?,
        lost_lines: log.lost.clone(),
        ..config(&arguments.place, environment, &arguments.accept_weaker)?
    };
    config.gateway.runtime = runtime;
    config.gateway.max_sandboxes = arguments.max_sandboxes;
    config.gateway.max_memory = arguments.max_memory;
    // Before anybody can know that it runs: an uncaught signal would end it at once.
    let mut signals =
        Signals::listen().map_err(|error| Failure::machine("listening to signals", error))?;
    let server = Server::open(config).await.map_err(from_program)?;
    announce(&server).await?;
    let stop = async move {
        signals.next().await;
    };
    server.run(stop).await.map_err(from_program)
}

/// What runs the sandboxes of this machine.
fn runtime(arguments: &ServeArguments) -> Result<MachineRuntime, Failure> {
    match (arguments.runtime, &arguments.docker_socket) {
        (MachineRuntimeName::Docker, socket) => Ok(MachineRuntime::Docker {
            socket: socket.clone(),
        }),
        (MachineRuntimeName::Embedded, None) => Ok(MachineRuntime::Embedded),
        (MachineRuntimeName::Embedded, Some(_)) => Err(Failure::usage(
            "--docker-socket is set without --runtime docker; say which of them is meant",
        )),
    }
}

/// The certificate and its key: both or none, each wherever it was said.
fn tls(arguments: &ServeArguments) -> Result<Option<TlsFiles>, Failure> {
    match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(Failure::usage(
            "--tls-cert is set without --tls-key; name the private key of the certificate too",
        )),
        (None, Some(_)) => Err(Failure::usage(
            "--tls-key is set without --tls-cert; name the certificate of the key too",
        )),
    }
}

/// Works on queues until a signal ends it.
pub(crate) async fn work(
    arguments: &WorkerArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let log = log::begin(&arguments.work.log)?;
    let queues = queues(&arguments.work.queues)?;
    if queues.is_empty() {
        return Err(Failure::usage(
            "a worker without a queue has nothing to do; name one with --queues",
        ));
    }
    let config = Config {
        queues,
        metrics_listen: arguments.work.metrics_listen,
        history_days: arguments.work.history_days,
        lost_lines: log.lost.clone(),
        sandbox_enabled: arguments.work.sandbox_enabled,
        ..config(&arguments.place, environment, "")?
    };
    let mut signals =
        Signals::listen().map_err(|error| Failure::machine("listening to signals", error))?;
    let stop = async {
        signals.next().await;
    };
    glovebox_server::program::work(config, stop)
        .await
        .map_err(from_program)
}

/// The queues of these names; `none` stands for none at all.
fn queues(names: &[String]) -> Result<Vec<Queue>, Failure> {
    if names == ["none"] {
        return Ok(Vec::new());
    }
    let read = |name: &String| {
        name.parse()
            .map_err(|error| Failure::usage(format!("--queues: {error}")))
    };
    names.iter().map(read).collect()
}

/// Says where people find it, and how the first of them gets in.
async fn announce(server: &Server) -> Result<(), Failure> {
    let app = server.app();
    let mut text = format!("Glovebox is at {}\n", app.config().address());
    if let Some(address) = app.config().metrics_listen {
        text.push_str(&format!("Its metrics are at http://{address}/metrics\n"));
    }
    let link = app.new_setup_link().await;
    let link =
        link.map_err(|error| Failure::machine("making the link for the first run", error))?;
    if let Some(link) = link {
        text.push_str("Nobody looks after it yet. Make yourself its administrator at\n");
        text.push_str(&format!("  {link}\n"));
        text.push_str("The link is good once, for 24 hours.\n");
    }
    super::print(&text)
}

/// Brings the tables of the database to this program's version.
pub(crate) async fn migrate(
    place: &PlaceArguments,
    environment: &Environment,
) -> Result<(), Failure> {
    let config = config(place, environment, "")?;
    let store = glovebox_store::Store::open(&config.database).await;
    let store = store.map_err(|error| Failure::machine("opening the database", error))?;
    let migrated = store.migrate().await;
    migrated.map_err(|error| Failure::machine("changing the tables of the database", error))?;
    drop(open_store(&config).await.map_err(from_program)?);
    super::print("the tables are those of this version\n")
}

/// What a server and the commands beside it are told by where its data are.
pub(crate) fn config(
    place: &PlaceArguments,
    environment: &Environment,
    accept_weaker: &str,
) -> Result<Config, Failure> {
    let tree = environment.data_folder(place.data.as_deref())?;
    let data = place.server_data.clone();
    let data = data.unwrap_or_else(|| tree.join("server"));
    let in_data = || format!("sqlite://{}", data.join("glovebox.db").display());
    Ok(Config {
        listen: ([127, 0, 0, 1], 0).into(),
        metrics_listen: None,
        database: place.database.clone().unwrap_or_else(in_data),
        tls: None,
        public_url: None,
        trusted_proxies: Vec::new(),
        insecure_http: false,
        sandbox_enabled: true,
        sandbox_gui_config: true,
        history_days: 90,
        streams: StreamLimits::default(),
        queues: Vec::new(),
        lost_lines: LostLines::default(),
        gateway: GatewayProgram {
            program: gateway_program()?,
            runtime: MachineRuntime::Embedded,
            tree,
            run: data.join("run"),
            search: environment.path.clone(),
            accept_weaker: accept_weaker.to_owned(),
            max_sandboxes: None,
            max_memory: None,
        },
        data,
    })
}

fn gateway_program() -> Result<PathBuf, Failure> {
    installation::find("glovebox-gateway")
}

fn usage(error: &glovebox_server::InvalidSetting) -> Failure {
    Failure::usage(error.to_string())
}

/// A server's failure as the command tells it.
pub(crate) fn from_program(error: ProgramError) -> Failure {
    failed("running the server", error)
}

/// The same for what is done beside a server.
pub(crate) fn failed(doing: &str, error: ProgramError) -> Failure {
    let fix = match &error {
        ProgramError::Setting(error) => return usage(error),
        ProgramError::Store(StoreError::MasterKey { .. } | StoreError::Sealed { .. }) => Some(
            "put the master key that belongs to this database there; where it is lost, run \
             `glovebox admin reset-secrets`",
        ),
        ProgramError::Tls(_) => Some(
            "name a certificate with --tls-cert and the private key that belongs to it with \
             --tls-key, both in PEM",
        ),
        ProgramError::Listen { .. } => {
            Some("name another address with --listen, or end what listens there")
        }
        ProgramError::Folder { .. } => {
            Some("name a folder that you may write with --server-data or --data")
        }
        ProgramError::Running { .. } => Some(
            "end that one first, or name another folder with --server-data; for several servers \
             at once name a PostgreSQL with --database",
        ),
        ProgramError::Lock { .. } => {
            Some("see to it that this user may write there, on a file system that knows locks")
        }
        ProgramError::NoDatabase { .. } => {
            Some("name a server's data with --data, --server-data or --database")
        }
        _ => None,
    };
    Failure::Machine {
        doing: doing.into(),
        fix: fix.map(Into::into),
        code: ErrorCode::Internal,
        cause: Some(error.into()),
    }
}
