//! Putting a server together and running it until it is told to stop.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::serve::ListenerExt as _;
use glovebox_client::{GatewayAddress, GatewayClient, GatewayIdentity};
use glovebox_protocol::ids::InstallationId;
use glovebox_protocol::sign::{Credential, SigningKey};
use glovebox_store::{Backend, Objects, Store, StoreError};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::app::{App, Parts};
use crate::config::{Config, InvalidSetting};
use crate::gateway::{Supervised, socket};
use crate::lock;
use crate::secrets::{
    CREDENTIAL, SIGNING_KEY, master_key, new_credential, new_signing_key, secret,
};
use crate::serving::{Limits, answer};
use crate::tls::{TlsError, TlsListener};

/// The name of the setting that holds the installation's id.
pub(crate) const INSTALLATION: &str = "installation";

/// Why a server does not run.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// A setting is not what it has to be.
    #[error(transparent)]
    Setting(#[from] InvalidSetting),
    /// The database, the master key or the files cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A folder of the data folder, or the file of the database, cannot be made.
    #[error("making {path}")]
    Folder {
        /// Which one.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A file of SQLite is one server's.
    #[error("another server runs with the database {path}")]
    Running {
        /// The file.
        path: String,
    },
    /// Whether another server runs cannot be found out.
    #[error("locking {path}")]
    Lock {
        /// Which file.
        path: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// There is no such file, and so no data.
    #[error("there is no database at {path}")]
    NoDatabase {
        /// Where it would be.
        path: String,
    },
    /// A stored secret is not what it has to be.
    #[error("the stored {0} is none; run `glovebox admin reset-secrets`")]
    Secret(&'static str),
    /// There are no random numbers.
    #[error("the system gives no random numbers")]
    Random,
    /// It cannot listen.
    #[error("listening at {at}")]
    Listen {
        /// Where.
        at: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// It cannot speak TLS.
    #[error("beginning to speak TLS")]
    Tls(#[from] TlsError),
    /// Something that it does beside its requests has ended.
    #[error("a part of the server has ended; its log says why")]
    Background,
}

/// A server that listens and has not answered yet.
pub struct Server {
    app: App,
    listener: Door,
    metrics: Option<TcpListener>,
    supervised: Supervised,
    database_lock: Option<File>,
}

/// Where callers come in.
enum Door {
    Plain(TcpListener),
    Tls(Box<TlsListener>),
}

/// Opens the database, in the version that this program wants. SQLite is brought there; a server
/// of PostgreSQL is others' too, and wants `glovebox migrate`.
///
/// # Errors
/// See [`ProgramError`].
pub async fn open_store(config: &Config) -> Result<Store, ProgramError> {
    make_folders(config)?;
    if config.database.starts_with("sqlite:") {
        keep_private(Path::new(file_of(&config.database)))?;
    }
    let store = Store::open(&config.database).await?;
    if store.backend() == Backend::Sqlite {
        if store.version().await? > 0 && store.check_version().await.is_err() {
            let copy = name_of_copy(file_of(&config.database));
            store.copy_into(&copy).await?;
        }
        store.migrate().await?;
    }
    store.check_version().await?;
    Ok(store)
}

/// Sees to it that no other server runs with the same file of SQLite, for as long as what it gives is
/// held. A PostgreSQL may have several servers. Workers and commands beside a server take no lock.
fn hold_database(config: &Config) -> Result<Option<File>, ProgramError> {
    if !config.database.starts_with("sqlite:") {
        return Ok(None);
    }
    make_folders(config)?;
    let file = file_of(&config.database);
    // Beside it: SQLite has locks of its own on the file, and not everywhere are they of another kind.
    let path = format!("{file}.lock");
    match lock::take(Path::new(&path)) {
        Ok(Some(held)) => Ok(Some(held)),
        Ok(None) => Err(ProgramError::Running { path: file.into() }),
        Err(source) => Err(ProgramError::Lock { path, source }),
    }
}

/// Opens a database that is there and has the tables of this program. Makes nothing.
///
/// # Errors
/// See [`ProgramError`].
pub async fn open_existing(config: &Config) -> Result<Store, ProgramError> {
    if config.database.starts_with("sqlite:") {
        let path = file_of(&config.database);
        if !Path::new(path).exists() {
            return Err(ProgramError::NoDatabase { path: path.into() });
        }
    }
    let store = Store::open(&config.database).await?;
    store.check_version().await?;
    Ok(store)
}

/// Opens a database that is to be filled, whatever tables it has, and makes the folders beside it.
///
/// # Errors
/// See [`ProgramError`].
pub async fn open_to_fill(config: &Config) -> Result<Store, ProgramError> {
    make_folders(config)?;
    Ok(Store::open(&config.database).await?)
}

/// The folder of what left sandboxes.
///
/// # Errors
/// When it is not there.
pub fn objects(config: &Config) -> Result<Objects, StoreError> {
    Objects::in_folder(&config.data.join("objects"))
}

/// Makes the file of the database where it is not there, and sees to it that only its owner reads
/// it, whatever folder it lies in: SQLite gives the files beside it the same mode.
fn keep_private(path: &Path) -> Result<(), ProgramError> {
    use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
    let failed = |source| ProgramError::Folder {
        path: path.display().to_string(),
        source,
    };
    std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .and_then(|file| file.set_permissions(std::fs::Permissions::from_mode(0o600)))
        .map_err(failed)
}

/// The file of an address of SQLite.
fn file_of(database: &str) -> &str {
    let path = database.trim_start_matches("sqlite:");
    let path = path.trim_start_matches("//");
    path.split('?').next().unwrap_or(path)
}

/// What a copy of the database is called that is made before its tables are changed.
fn name_of_copy(path: &str) -> String {
    format!(
        "{path}.before-{}",
        chrono::Utc::now().format("%Y%m%dT%H%M%S")
    )
}

fn make_folders(config: &Config) -> Result<(), ProgramError> {
    use std::os::unix::fs::DirBuilderExt as _;
    let data = &config.data;
    let all = [
        data.clone(),
        data.join("objects"),
        data.join("spool"),
        config.gateway.run.clone(),
    ];
    for folder in all {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|source| ProgramError::Folder {
                path: folder.display().to_string(),
                source,
            })?;
    }
    Ok(())
}

/// Puts everything together that neither listens nor starts anything: for commands beside a server.
///
/// # Errors
/// See [`ProgramError`].
pub async fn assemble(config: Config) -> Result<App, ProgramError> {
    put_together(config).await.map(|(app, _)| app)
}

async fn put_together(config: Config) -> Result<(App, Supervised), ProgramError> {
    config.check()?;
    let store = open_store(&config).await?;
    let master = master_key(&store, &config.data).await?;
    let mut changes = store.begin().await?;
    let installation = changes
        .set_once(INSTALLATION, InstallationId::new())
        .await?;
    let signing = secret(&mut changes, &master, SIGNING_KEY, new_signing_key).await?;
    let written = secret(&mut changes, &master, CREDENTIAL, new_credential).await?;
    changes.commit().await?;
    let signing: SigningKey = signing
        .parse()
        .map_err(|_| ProgramError::Secret(SIGNING_KEY))?;
    let credential: Credential = written
        .parse()
        .map_err(|_| ProgramError::Secret(CREDENTIAL))?;
    let socket = socket(&config.gateway.run);
    let supervised = Supervised {
        program: config.gateway.clone(),
        state: config.data.join("gateway"),
        socket: socket.clone(),
        credential: written,
        agent_key: signing.public(),
        installation,
    };
    let identity = GatewayIdentity {
        credential,
        installation: Some(installation),
    };
    let app = App::new(Parts {
        objects: objects(&config)?,
        config,
        store,
        master,
        installation,
        signing: Arc::new(signing),
        gateway: GatewayClient::new(identity, GatewayAddress::Unix(socket)),
    });
    Ok((app, supervised))
}

/// Works on the queues of the configuration until `stop` is done: a server without requests.
///
/// # Errors
/// See [`ProgramError`].
pub async fn work(mut config: Config, stop: impl Future<Output = ()>) -> Result<(), ProgramError> {
    let queues = config.queues.clone();
    let metrics = match &mut config.metrics_listen {
        Some(at) => Some(listen(at).await?),
        None => None,
    };
    let app = assemble(config).await?;
    match app.config().metrics_listen {
        Some(metrics) => tracing::info!(?queues, %metrics, "working"),
        None => tracing::info!(?queues, "working"),
    }
    let mut background = JoinSet::new();
    let mut workers = JoinSet::new();
    workers.spawn(crate::worker::run(app.clone(), queues));
    serve_metrics(&mut background, &app, metrics);
    let worked = until_stopped(&mut background, &mut workers, stop).await;
    end_work(&app, workers).await;
    background.shutdown().await;
    app.store().close().await;
    worked
}

/// Serves the metrics beside everything else, where somebody said where.
fn serve_metrics(background: &mut JoinSet<()>, app: &App, listener: Option<TcpListener>) {
    if let Some(listener) = listener {
        let routes = crate::http::metrics_router(app.clone());
        let limits = Limits::default();
        background.spawn(answer(listener, routes, limits, std::future::pending()));
    }
}

/// Waits for the end of what is to end. Nothing that is done beside it has an end: a program without
/// one of its parts would only look alive.
async fn until_stopped(
    background: &mut JoinSet<()>,
    workers: &mut JoinSet<()>,
    stop: impl Future<Output = ()>,
) -> Result<(), ProgramError> {
    tokio::select! {
        () = stop => Ok(()),
        Some(_) = background.join_next() => Err(ProgramError::Background),
        Some(_) = workers.join_next() => Err(ProgramError::Background),
    }
}

/// Ends the work on queues: of what was being made, no sandbox stays.
async fn end_work(app: &App, mut workers: JoinSet<()>) {
    workers.shutdown().await;
    crate::worker::give_back(app).await;
}

/// Listens. Where the system chooses the port, `at` names it afterwards.
async fn listen(at: &mut SocketAddr) -> Result<TcpListener, ProgramError> {
    let failed = |source| ProgramError::Listen { at: *at, source };
    let listener = TcpListener::bind(*at).await.map_err(failed)?;
    if let Ok(bound) = listener.local_addr() {
        *at = bound;
    }
    Ok(listener)
}

impl Server {
    /// Puts a server together and listens.
    ///
    /// # Errors
    /// See [`ProgramError`].
    pub async fn open(mut config: Config) -> Result<Self, ProgramError> {
        config.check()?;
        // First: where another server runs, its address is most likely taken, too.
        let database_lock = hold_database(&config)?;
        let listener = listen(&mut config.listen).await?;
        let listener = match &config.tls {
            None => Door::Plain(listener),
            Some(files) => Door::Tls(Box::new(TlsListener::new(listener, files.clone())?)),
        };
        let metrics = match &mut config.metrics_listen {
            Some(at) => Some(listen(at).await?),
            None => None,
        };
        let (app, supervised) = put_together(config).await?;
        // A worker is not told what the gateway drives, and needs not know it.
        app.ensure_this_machine().await?;
        app.end_what_obeys_another_key().await?;
        Ok(Self {
            app,
            listener,
            metrics,
            supervised,
            database_lock,
        })
    }

    /// What it works on.
    #[must_use]
    pub fn app(&self) -> &App {
        &self.app
    }

    /// Answers requests until `stop` is done, then ends what is under way in order.
    ///
    /// # Errors
    /// When it cannot go on.
    pub async fn run(
        self,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), ProgramError> {
        let mut background = JoinSet::new();
        let mut workers = JoinSet::new();
        let queues = self.app.config().queues.clone();
        background.spawn(self.supervised.run());
        // Without a queue it would end at once, and its end is taken for a fault.
        if !queues.is_empty() {
            workers.spawn(crate::worker::run(self.app.clone(), queues));
        }
        background.spawn(crate::worker::mark_driven(self.app.clone()));
        background.spawn(crate::leftovers::remove(self.app.clone()));
        serve_metrics(&mut background, &self.app, self.metrics);
        let limits = Limits::behind(&self.app.config().trusted_proxies);
        let routes = crate::http::router(self.app.clone());
        let app = self.app.clone();
        // Code that runs, and whoever waits for it, hear of the end before the connections close.
        let stop = async move {
            stop.await;
            app.wind_up().await;
        };
        let answering = async {
            match self.listener {
                Door::Plain(listener) => {
                    let listener = listener.tap_io(|stream| {
                        crate::serving::prepare(stream);
                    });
                    answer(listener, routes, limits, stop).await;
                }
                Door::Tls(listener) => answer(*listener, routes, limits, stop).await,
            }
        };
        let served = until_stopped(&mut background, &mut workers, answering).await;
        end_work(&self.app, workers).await;
        // Its gateway ends with it: sandboxes stay, for the next one.
        background.shutdown().await;
        self.app.store().close().await;
        drop(self.database_lock);
        served
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_in_the_background_that_ends_ends_the_server() {
        let mut background = JoinSet::new();
        background.spawn(std::future::pending());
        background.spawn(async {});
        let ended =
            until_stopped(&mut background, &mut JoinSet::new(), std::future::pending()).await;
        assert!(matches!(ended, Err(ProgramError::Background)), "{ended:?}");
    }

    #[tokio::test]
    async fn a_server_that_is_told_to_stop_has_not_failed() {
        let mut background = JoinSet::new();
        background.spawn(std::future::pending());
        let stopped = until_stopped(&mut background, &mut JoinSet::new(), async {}).await;
        stopped.unwrap();
    }
}
