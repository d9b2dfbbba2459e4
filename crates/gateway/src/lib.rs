//! The gateway: the one service that touches a runtime.
//!
//! It checks signed requests, makes and ends sandboxes by the rules of its installation, and passes
//! on what is signed for an agent. It holds no key of an agent's and can make up nothing. What
//! makes sandboxes is behind [`glovebox_runtime::Runtime`]; only [`program`] names concrete ones.

mod auth;
mod body;
mod budget;
mod canary;
pub mod config;
mod connections;
mod error;
pub mod folder;
mod http;
mod images;
mod info;
mod journal;
mod lifecycle;
#[cfg(feature = "drivers")]
mod listening;
pub mod preflight;
#[cfg(feature = "drivers")]
pub mod program;
mod ready;
mod reconcile;
mod relay;
mod reply;
mod request;
mod routes;
mod serve;
mod state;
mod strangers;
mod table;
mod tls;
mod unborn;

pub use glovebox_client::Fingerprint;
pub use images::{AllowedImages, InvalidImage};
pub use journal::Journal;
pub use serve::Listener;
pub use state::{Clock, Place, Rules, Surroundings};
pub use tls::{NewIdentity, TlsError, TlsIdentity};

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use glovebox_protocol::sign::{Credentials, Epoch, NoRandomness};
use glovebox_runtime::Runtime;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use connections::Connections;
use state::Shared;

/// Connections that may be there at once.
const MAX_CONNECTIONS: usize = 512;

/// How long a start waits for the runtime's list of sandboxes.
const ADOPT_PATIENCE: Duration = Duration::from_secs(10);

/// A gateway. When it is dropped, its connections are cut; its sandboxes stay.
pub struct Gateway {
    shared: Arc<Shared>,
    connections: Connections,
    keeping: AbortHandle,
}

impl Gateway {
    /// A gateway over a runtime. Nothing is served yet. To be called within a Tokio runtime.
    ///
    /// # Errors
    /// When the operating system has no random bytes for its boot epoch.
    pub fn new(
        rules: Rules,
        credentials: Credentials,
        runtime: Arc<dyn Runtime>,
        surroundings: Surroundings,
    ) -> Result<Self, NoRandomness> {
        let shared = Shared::new(rules, credentials, runtime, surroundings)?;
        let shared = Arc::new(shared);
        let keeping = tokio::spawn(reconcile::keep(Arc::downgrade(&shared)));
        Ok(Self {
            shared,
            connections: Connections::new(MAX_CONNECTIONS),
            keeping: keeping.abort_handle(),
        })
    }

    /// Serves every connection of a listener. Returns only when that fails.
    pub async fn serve(&self, listener: Listener) -> std::io::Error {
        serve::serve(&self.shared, &self.connections, listener).await
    }

    /// Takes over what another life of the gateway has made, so that the first request finds it. A
    /// runtime that does not answer is asked again later, and requests are told so until then.
    pub async fn adopt(&self) {
        // What goes wrong is told by the look that comes next.
        let _ = timeout(ADOPT_PATIENCE, reconcile::look(&self.shared)).await;
    }

    /// Accepts these credentials from now on, and others no more.
    pub fn set_credentials(&self, credentials: Credentials) {
        self.shared.set_credentials(credentials);
    }

    /// Which life of the gateway this is.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.shared.epoch
    }

    /// How many connections there are.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.count()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

/// The system's clock.
#[must_use]
pub fn system_clock() -> Clock {
    Arc::new(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
    })
}
