//! What is looked up when somebody reads the metrics: leases, the gateway, the age of a sweep.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use glovebox_protocol::gateway::Budget;
use glovebox_store::LeaseState;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Word;
use crate::app::App;

/// How long database and gateway may take to answer. Whoever reads metrics gives up after ten seconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The states of a lease that is not over.
const LIVE: [LeaseState; 3] = [
    LeaseState::Starting,
    LeaseState::Ready,
    LeaseState::Suspended,
];

/// What was seen last.
#[derive(Debug)]
pub(crate) struct Looked {
    leases: Family<Word, Gauge>,
    running: Gauge,
    database: Gauge,
    gateway: Gauge,
    sandboxes: Gauge,
    max_sandboxes: Gauge,
    memory: Gauge,
    max_memory: Gauge,
    sweep_age: Gauge<f64, AtomicU64>,
    /// When the last sweep was done; before the first one, when the program started.
    last_sweep: Mutex<Instant>,
}

impl Default for Looked {
    fn default() -> Self {
        Self {
            leases: Family::default(),
            running: Gauge::default(),
            database: Gauge::default(),
            gateway: Gauge::default(),
            sandboxes: Gauge::default(),
            max_sandboxes: Gauge::default(),
            memory: Gauge::default(),
            max_memory: Gauge::default(),
            sweep_age: Gauge::default(),
            last_sweep: Mutex::new(Instant::now()),
        }
    }
}

impl Looked {
    pub(super) fn register(&self, all: &mut Registry) {
        all.register(
            "leases",
            "Sandboxes of the installation that are not over, by state",
            self.leases.clone(),
        );
        let gauges = [
            (
                "executions_running",
                "Executions that this process drives",
                &self.running,
            ),
            (
                "database_up",
                "1 when the database answers; 0 when not, and then `glovebox_leases` is old",
                &self.database,
            ),
            (
                "gateway_up",
                "1 when the gateway of this machine answers; 0 when not, and then what else is known of it is old",
                &self.gateway,
            ),
            (
                "gateway_sandboxes",
                "Sandboxes that the gateway has, those kept ready too",
                &self.sandboxes,
            ),
            (
                "gateway_sandboxes_limit",
                "Sandboxes that it may have",
                &self.max_sandboxes,
            ),
            (
                "gateway_memory_bytes",
                "Memory that its sandboxes use, with a reserve for each",
                &self.memory,
            ),
            (
                "gateway_memory_limit_bytes",
                "Memory that they may use",
                &self.max_memory,
            ),
        ];
        for (name, help, gauge) in gauges {
            all.register(name, help, gauge.clone());
        }
        all.register(
            "worker_last_sweep_age_seconds",
            "Time since the worker last looked everything through; before the first time, since the start",
            self.sweep_age.clone(),
        );
    }

    pub(super) fn swept(&self) {
        *self.last() = Instant::now();
    }

    fn last(&self) -> std::sync::MutexGuard<'_, Instant> {
        // A point in time is never half changed.
        self.last_sweep
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn budget(&self, budget: &Budget) {
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.sandboxes.set(budget.sandboxes.into());
        self.max_sandboxes.set(budget.max_sandboxes.into());
        self.memory.set(bytes(budget.memory_bytes));
        self.max_memory.set(bytes(budget.max_memory_bytes));
    }
}

/// What was asked for, if it comes, and in time.
async fn in_time<T, E>(asked: impl Future<Output = Result<T, E>>) -> Option<T> {
    tokio::time::timeout(PATIENCE, asked).await.ok()?.ok()
}

impl App {
    /// Looks up what is not counted, and gives everything as Prometheus reads it. What does not
    /// answer is told as such and keeps nothing else from being told.
    pub(crate) async fn measured(&self) -> String {
        let looked = self.metrics().looked();
        let running = self.running().ids().len();
        looked
            .running
            .set(i64::try_from(running).unwrap_or(i64::MAX));
        looked.sweep_age.set(looked.last().elapsed().as_secs_f64());
        self.metrics().lost_lines(self.config().lost_lines.count());
        let (leases, info) = tokio::join!(
            in_time(self.store().live_leases()),
            in_time(self.gateway().info())
        );
        looked.database.set(leases.is_some().into());
        if let Some(leases) = leases {
            for state in LIVE {
                let count = leases.iter().filter(|lease| lease.state == state).count();
                looked
                    .leases
                    .get_or_create(&[("state", state.as_str())])
                    .set(i64::try_from(count).unwrap_or(i64::MAX));
            }
        }
        looked.gateway.set(info.is_some().into());
        if let Some(info) = info {
            looked.budget(&info.budget);
        }
        self.metrics().written()
    }
}
