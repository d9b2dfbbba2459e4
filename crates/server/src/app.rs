//! What the server does: one file for each noun, each function a whole use case. Nothing here
//! knows of HTTP; `http/` extracts, calls one of these and answers.

pub mod account;
pub mod artifacts;
pub mod attachments;
mod batches;
pub mod chats;
pub mod collect;
pub mod deployment;
pub(crate) mod drive;
pub mod executions;
pub mod files;
pub mod gate;
pub(crate) mod hard_limit;
mod kept;
pub mod knowledge;
pub mod messages;
pub mod model_test;
pub mod models;
pub mod previews;
mod profile_settings;
pub mod profiles;
mod reserve;
mod revoke;
pub mod running;
pub mod sandboxes;
pub mod setup;
pub(crate) mod spool;
pub(crate) mod stopping;
pub(crate) mod streams;
mod this_machine;
pub mod threads;
mod uploads;
pub mod users;
pub mod workspaces;

use std::sync::Arc;

use glovebox_client::{AgentClient, GatewayClient, Identity};
use glovebox_protocol::ids::{InstallationId, SandboxId};
use glovebox_protocol::sign::SigningKey;
use glovebox_store::{MasterKey, Objects, Store};
use tokio::sync::Notify;

use crate::auth::Passwords;
use crate::chat::live::Live;
use crate::chat::model::ModelClient;
use crate::config::Config;
use crate::metrics::Metrics;
use crate::worker::InHand;
use gate::BreakGlass;
use running::Running;
use spool::Spool;
use stopping::Stopping;
use streams::Streams;

/// Does something to its end, also where whoever asked for it goes away meanwhile: a request is dropped
/// with its connection, and what others see already has to be gone on with.
pub(crate) async fn to_its_end<T: Send + 'static>(
    doing: impl Future<Output = T> + Send + 'static,
) -> T {
    match tokio::spawn(doing).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The process ends, and with it whoever waits here.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The server's state. Clones share it.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    config: Config,
    store: Store,
    objects: Objects,
    master: MasterKey,
    installation: InstallationId,
    signing: Arc<SigningKey>,
    gateway: GatewayClient,
    passwords: Passwords,
    running: Running,
    stopping: Stopping,
    spool: Spool,
    live: Live,
    /// Told when a preview was asked for, so that nobody waits for the next look into the queue: one
    /// for those that are made in a sandbox, one for those of text.
    preview_wanted: Notify,
    text_preview_wanted: Notify,
    in_hand: InHand,
    streams: Streams,
    metrics: Metrics,
    models: ModelClient,
}

/// What a server is put together of.
pub struct Parts {
    /// What it is told.
    pub config: Config,
    /// Its database.
    pub store: Store,
    /// Its files.
    pub objects: Objects,
    /// What its secrets are sealed with.
    pub master: MasterKey,
    /// Which installation it is.
    pub installation: InstallationId,
    /// The key that agents obey.
    pub signing: Arc<SigningKey>,
    /// The gateway of this machine.
    pub gateway: GatewayClient,
}

impl App {
    /// Puts a server together.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let spool = Spool::new(parts.config.data.join("spool"));
        Self {
            inner: Arc::new(Inner {
                config: parts.config,
                store: parts.store,
                objects: parts.objects,
                master: parts.master,
                installation: parts.installation,
                signing: parts.signing,
                gateway: parts.gateway,
                passwords: Passwords::new(),
                running: Running::default(),
                stopping: Stopping::default(),
                spool,
                live: Live::default(),
                preview_wanted: Notify::new(),
                text_preview_wanted: Notify::new(),
                in_hand: InHand::default(),
                streams: Streams::default(),
                metrics: Metrics::default(),
                models: ModelClient::default(),
            }),
        }
    }

    /// What it is told.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Its database.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Its files.
    #[must_use]
    pub fn objects(&self) -> &Objects {
        &self.inner.objects
    }

    /// What its secrets are sealed with.
    #[must_use]
    pub fn master(&self) -> &MasterKey {
        &self.inner.master
    }

    /// Which installation it is.
    #[must_use]
    pub fn installation(&self) -> InstallationId {
        self.inner.installation
    }

    /// The gateway of this machine.
    #[must_use]
    pub fn gateway(&self) -> &GatewayClient {
        &self.inner.gateway
    }

    pub(crate) fn signing(&self) -> &Arc<SigningKey> {
        &self.inner.signing
    }

    pub(crate) fn passwords(&self) -> &Passwords {
        &self.inner.passwords
    }

    pub(crate) fn spool(&self) -> &Spool {
        &self.inner.spool
    }

    pub(crate) fn running(&self) -> &Running {
        &self.inner.running
    }

    pub(crate) fn stopping(&self) -> &Stopping {
        &self.inner.stopping
    }

    pub(crate) fn live(&self) -> &Live {
        &self.inner.live
    }

    pub(crate) fn preview_wanted(&self, is_text: bool) -> &Notify {
        if is_text {
            &self.inner.text_preview_wanted
        } else {
            &self.inner.preview_wanted
        }
    }

    /// The streams of events that are open here.
    pub(crate) fn streams(&self) -> &Streams {
        &self.inner.streams
    }

    /// The previews that are being made here.
    pub(crate) fn in_hand(&self) -> &InHand {
        &self.inner.in_hand
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// What asks model endpoints.
    pub(crate) fn models(&self) -> &ModelClient {
        &self.inner.models
    }

    /// What the environment forces.
    #[must_use]
    pub fn break_glass(&self) -> BreakGlass {
        BreakGlass {
            sandbox_enabled: self.inner.config.sandbox_enabled,
        }
    }

    /// A client of the agent in a sandbox.
    #[must_use]
    pub fn agent(&self, sandbox: SandboxId) -> AgentClient {
        let identity = Identity {
            key: Arc::clone(&self.inner.signing),
            installation: self.inner.installation,
            sandbox,
        };
        self.inner.gateway.agent(identity, None)
    }
}
