//! Taking up sandboxes: those of an earlier process, and each new one once its agent answers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use glovebox_protocol::gateway::HARD_LIMIT_REACHED;
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::record::Magic;
use glovebox_runtime::RuntimeError;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, timeout};

use crate::driver::Inner;
use crate::engine::EngineError;
use crate::keeper::{HELLO_PATIENCE, Keeper, end_of};
use crate::labels::{INSTALLATION, Labels};
use crate::link::Session;
use crate::table::Kept;

/// Streams that may be asked for at once.
const WANTED_AHEAD: usize = 64;

impl Inner {
    /// The containers of this installation.
    pub(crate) async fn containers(&self) -> Result<Vec<(Labels, String)>, RuntimeError> {
        let label = format!("{INSTALLATION}={}", self.installation);
        let found = self.engine.list(&label).await;
        let found = found.map_err(|error| error.while_doing("listing the engine's containers"))?;
        Ok(found
            .into_iter()
            .filter_map(|container| {
                let labels = Labels::from_map(container.labels.as_ref()?)?;
                let ours = labels.installation == self.installation;
                ours.then_some((labels, container.id?))
            })
            .collect())
    }

    /// Takes up what an earlier process has left: what answers goes on, what has ended is known
    /// with its reason, what was only half made is removed.
    pub(crate) async fn adopt_all(self: &Arc<Self>) -> Result<(), RuntimeError> {
        let mut adopting = JoinSet::new();
        for (labels, container) in self.containers().await? {
            let inner = Arc::clone(self);
            adopting.spawn(async move { inner.adopt(&labels, container).await });
        }
        while let Some(adopted) = adopting.join_next().await {
            adopted.map_err(|error| RuntimeError::Internal {
                doing: "taking up the sandboxes of an earlier process".into(),
                cause: error.into(),
            })??;
        }
        Ok(())
    }

    async fn adopt(
        self: &Arc<Self>,
        labels: &Labels,
        container: String,
    ) -> Result<(), RuntimeError> {
        let id = labels.id;
        let doing = format!("taking up the sandbox {id}");
        let found = match self.engine.inspect(&container).await {
            Ok(found) => found,
            Err(EngineError::Missing(_)) => return Ok(()),
            Err(error) => return Err(error.while_doing(doing)),
        };
        let status = found.state.as_ref().and_then(|state| state.status);
        let never_ran = status == Some(bollard::models::ContainerStateStatusEnum::CREATED);
        if !never_ran {
            if let Some(reason) = end_of(&found) {
                return self
                    .table
                    .insert_ended(id, container, reason, labels.hard_deadline_ms);
            }
            let session = self.hello(&container, labels.magic).await;
            let session = session.map_err(|error| error.while_doing(doing.clone()))?;
            let is_half_made = session.is_none() && {
                let first = self.hello(&container, Magic::FIRST).await;
                first.map_err(|error| error.while_doing(doing))?.is_some()
            };
            if !is_half_made {
                // One that is too busy to answer now is somebody's all the same: it is asked again.
                self.table.reserve(id, labels.hard_deadline_ms)?;
                self.keep(labels, container, session);
                return Ok(());
            }
        }
        // It never ran, or waits to be told what it is: nobody was told of it.
        let removed = self.engine.remove(&container).await;
        removed.map_err(|error| error.while_doing(format!("removing the half made sandbox {id}")))
    }

    /// A session with an agent that knows this magic; nothing where none acknowledges it in time.
    async fn hello(&self, container: &str, magic: Magic) -> Result<Option<Session>, EngineError> {
        let attached = self.engine.attach(container).await?;
        let begun = timeout(HELLO_PATIENCE, Session::begin(attached, magic)).await;
        Ok(begun.ok().and_then(Result::ok))
    }

    /// Stays attached to a sandbox, and ends it at its deadline. Without a session, one is begun as
    /// soon as its agent answers.
    pub(crate) fn keep(
        self: &Arc<Self>,
        labels: &Labels,
        container: String,
        session: Option<Session>,
    ) {
        let (streams, requests) = mpsc::channel(WANTED_AHEAD);
        let keeper = Keeper {
            engine: self.engine.clone(),
            table: self.table.clone(),
            id: labels.id,
            container: container.clone(),
            magic: labels.magic,
            requests,
        };
        let kept = Kept {
            container,
            streams,
            keeper: tokio::spawn(keeper.keep(session)),
            timer: labels
                .hard_deadline_ms
                .map(|deadline| self.end_at(labels.id, deadline)),
        };
        if let Err(kept) = self.table.keep(labels.id, kept) {
            kept.keeper.abort();
        }
    }

    fn end_at(self: &Arc<Self>, id: SandboxId, deadline_ms: i64) -> AbortHandle {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now_ms = now.map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX));
        let left = u64::try_from(deadline_ms.saturating_sub(now_ms)).unwrap_or(0);
        let at = Instant::now() + Duration::from_millis(left);
        let inner = Arc::downgrade(self);
        let timer = tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            if let Some(inner) = inner.upgrade() {
                // Tried again where the engine is away: a sandbox must not outlive its time.
                let mut again = tokio::time::interval(Duration::from_secs(1));
                loop {
                    again.tick().await;
                    if inner.end(id, HARD_LIMIT_REACHED).await.is_ok() {
                        return;
                    }
                }
            }
        });
        timer.abort_handle()
    }
}
