//! What all requests share.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use glovebox_protocol::gateway::CredentialInfo;
use glovebox_protocol::ids::{GatewayId, InstallationId};
use glovebox_protocol::sign::{Credentials, Epoch, KeyId, NoRandomness, PublicKey, Verifier};
use glovebox_runtime::Runtime;
use tokio::sync::SetOnce;

use crate::canary::Plans;
use crate::config::Listen;
use crate::images::AllowedImages;
use crate::journal::Journal;
use crate::strangers::Strangers;
use crate::table::Table;

/// How long a request waits for a runtime that has not told its sandboxes since the start.
const ADOPTION_PATIENCE: Duration = Duration::from_secs(10);

/// Tells the time, in milliseconds since 1970 (UTC).
pub type Clock = Arc<dyn Fn() -> i64 + Send + Sync>;

/// What a gateway was told at its installation. No request changes any of it.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Which gateway this is.
    pub gateway: GatewayId,
    /// Which installation it belongs to.
    pub installation: InstallationId,
    /// The keys that agents obey: one, or two during a rotation.
    pub agent_keys: Vec<PublicKey>,
    /// What sandboxes may be made of.
    pub images: AllowedImages,
    /// Sandboxes that may exist at once.
    pub max_sandboxes: u32,
    /// Memory that all sandboxes together may take, in bytes.
    pub max_memory_bytes: u64,
    /// How long before its hard deadline a sandbox is shown as ending, in milliseconds.
    pub ending_window_ms: u64,
}

/// What a gateway needs to know of its surroundings.
#[derive(Clone)]
pub struct Surroundings {
    /// Where the time comes from.
    pub clock: Clock,
    /// Where it tells what happens.
    pub journal: Journal,
    /// Where it is.
    pub place: Place,
}

/// Where a gateway is, as far as it is anywhere.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Its state folder.
    pub state: Option<PathBuf>,
    /// Where it listens.
    pub listen: Option<Listen>,
}

/// What the handlers of requests share.
pub(crate) struct Shared {
    pub(crate) rules: Rules,
    pub(crate) epoch: Epoch,
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) table: Table,
    pub(crate) clock: Clock,
    pub(crate) journal: Journal,
    pub(crate) place: Place,
    pub(crate) plans: Plans,
    pub(crate) strangers: Strangers,
    auth: Mutex<Auth>,
    /// Memory that all sandboxes used when it was last looked at, in bytes.
    pub(crate) memory_bytes: AtomicU64,
    /// Whether what another life of the gateway has made is in the table.
    adopted: SetOnce<()>,
}

struct Auth {
    verifier: Verifier<Credentials>,
    /// The ids of the credentials, the new one first.
    ids: Vec<KeyId>,
}

impl Shared {
    pub(crate) fn new(
        rules: Rules,
        credentials: Credentials,
        runtime: Arc<dyn Runtime>,
        surroundings: Surroundings,
    ) -> Result<Self, NoRandomness> {
        let epoch = Epoch::random()?;
        let ids = ids_of(&credentials);
        let audience = rules.gateway.to_string();
        let verifier = Verifier::new(rules.installation, audience, epoch, credentials);
        Ok(Self {
            rules,
            epoch,
            runtime,
            table: Table::default(),
            clock: surroundings.clock,
            journal: surroundings.journal,
            place: surroundings.place,
            plans: Plans::default(),
            strangers: Strangers::default(),
            auth: Mutex::new(Auth { verifier, ids }),
            memory_bytes: AtomicU64::new(0),
            adopted: SetOnce::new(),
        })
    }

    /// Whether the table knows of what was there before.
    pub(crate) fn is_adopted(&self) -> bool {
        self.adopted.get().is_some()
    }

    /// Waits until it does, but not for ever. Whether it does then.
    pub(crate) async fn until_adopted(&self) -> bool {
        self.is_adopted()
            || tokio::time::timeout(ADOPTION_PATIENCE, self.adopted.wait())
                .await
                .is_ok()
    }

    pub(crate) fn set_adopted(&self) {
        // A second time changes nothing.
        let _ = self.adopted.set(());
    }

    /// Milliseconds since 1970 (UTC).
    pub(crate) fn now_ms(&self) -> i64 {
        (self.clock)()
    }

    /// Does something with what decides on signatures.
    pub(crate) fn verifier<T>(&self, work: impl FnOnce(&mut Verifier<Credentials>) -> T) -> T {
        work(&mut lock(&self.auth).verifier)
    }

    /// Accepts these credentials from now on. What was seen stays seen.
    pub(crate) fn set_credentials(&self, credentials: Credentials) {
        let mut auth = lock(&self.auth);
        auth.ids = ids_of(&credentials);
        auth.verifier.set_signers(credentials);
    }

    /// The credentials that are accepted, by their short names.
    pub(crate) fn credentials(&self, yours: KeyId) -> Vec<CredentialInfo> {
        let auth = lock(&self.auth);
        let ids = auth.ids.iter().copied();
        ids.map(|id| CredentialInfo {
            id,
            is_yours: id == yours,
        })
        .collect()
    }
}

fn ids_of(credentials: &Credentials) -> Vec<KeyId> {
    credentials.0.iter().map(|one| one.id()).collect()
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that holds one of these can panic halfway.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
