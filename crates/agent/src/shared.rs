//! What the handlers of requests share.

use std::sync::Arc;

use glovebox_protocol::agent_config::AgentConfig;
use glovebox_protocol::health::{Health, Status};
use glovebox_protocol::sign::Epoch;
use tokio::sync::SetOnce;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use crate::activity::Activity;
use crate::agent::Clock;
use crate::claimed::Claimed;
use crate::error::ApiError;
use crate::files::FileThreads;
use crate::kernel::{KernelHost, Supply};
use crate::line::Line;
use crate::lock::Locked;
use crate::logs::Logs;
use crate::process::{Reaper, Registry, Workload};
use crate::words::Words;

pub(crate) struct Shared {
    pub(crate) config: AgentConfig,
    pub(crate) epoch: Epoch,
    pub(crate) clock: Clock,
    pub(crate) words: Words,
    /// See [`Self::claimed`], which waits for it.
    pub(crate) claimed: SetOnce<Claimed>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) line: Option<Arc<Line>>,
    pub(crate) supply: Option<Arc<Supply>>,
    pub(crate) files: FileThreads,
    pub(crate) workload: Arc<Workload>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) kernel: Arc<KernelHost>,
    pub(crate) started: Instant,
    pub(crate) reaper: Arc<Reaper>,
    pub(crate) tasks: Locked<Vec<AbortHandle>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.reaper.kill_all();
        self.tasks
            .with(|tasks| tasks.iter().for_each(AbortHandle::abort));
    }
}

impl Shared {
    /// Lets a task live as long as the agent.
    pub(crate) fn keep(&self, task: JoinHandle<()>) {
        self.tasks.with(|tasks| tasks.push(task.abort_handle()));
    }

    pub(crate) fn health(&self) -> Health {
        Health {
            protocol: glovebox_protocol::PROTOCOL_VERSION,
            epoch: self.epoch,
        }
    }

    pub(crate) async fn status(&self, claimed: &Claimed) -> Result<Status, ApiError> {
        let usage = self
            .files
            .run(|workspace| workspace.usage())
            .await?
            .map_err(|error| ApiError::internal("asking how full the workspace is", &error))?;
        let blocks = usage.f_blocks.saturating_sub(usage.f_bfree);
        let used_bytes = blocks.saturating_mul(usage.f_frsize);
        let used_inodes = usage.f_files.saturating_sub(usage.f_ffree);
        let milliseconds = |since: Instant| u64::try_from(since.elapsed().as_millis()).unwrap_or(0);
        Ok(Status {
            sandbox_id: claimed.sandbox,
            is_unclaimed: claimed.is_unclaimed(),
            claimant: claimed.claimant(),
            uptime_ms: milliseconds(self.started),
            idle_ms: milliseconds(self.activity.last_use()),
            input_bytes: claimed.inputs.total_bytes(),
            workspace_used_bytes: used_bytes,
            workspace_used_inodes: used_inodes,
            oom_kills: self.workload.oom_kills(),
            processes: self.workload.count().await,
        })
    }
}
