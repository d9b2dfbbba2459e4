//! Starting a launcher, finding one that stays, and starting one anew where it has ended.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use glovebox_box::control::{FaultKind, LauncherConfig, PodFacts};
use glovebox_runtime::RuntimeError;

use super::failure::from_link;
use super::making::Inner;
use super::table::Table;
use crate::link::{Link, LinkError};

/// How often, and how many times, a launcher that is just ending is looked for again.
const ASK_EVERY: Duration = Duration::from_millis(50);
const ASK_TIMES: u32 = 400;

/// How a launcher is started.
#[derive(Debug)]
pub(super) struct Launch {
    /// The program.
    pub(super) program: PathBuf,
    /// What it is told.
    pub(super) config: LauncherConfig,
}

impl Launch {
    /// Comes in to the launcher that is there, or starts one.
    pub(super) async fn find_or_start(
        &self,
        table: &Table,
    ) -> Result<(Link, PodFacts), RuntimeError> {
        let found = self.try_both(table).await;
        found.map_err(|error| from_link("starting the launcher of the embedded runtime", error))
    }

    async fn try_both(&self, table: &Table) -> Result<(Link, PodFacts), LinkError> {
        let Self { program, config } = self;
        let mut asking = tokio::time::interval(ASK_EVERY);
        for _ in 0..ASK_TIMES {
            asking.tick().await;
            if config.stays
                && let Some(found) = Link::attach(config, table.clone()).await?
            {
                return Ok(found);
            }
            match Link::start(program, config, table.clone()).await {
                // One is just ending, or was started a moment ago by somebody else.
                Err(LinkError::Fault(fault)) if config.stays && fault.kind == FaultKind::Held => {}
                other => return other,
            }
        }
        Link::start(program, config, table.clone()).await
    }
}

impl Inner {
    /// The line to the launcher that serves now.
    pub(super) async fn link(&self) -> Arc<Link> {
        Arc::clone(&*self.link.read().await)
    }

    /// Makes sure that there is a launcher: where one that stays has ended, and its sandboxes with
    /// it, another one is started for the next ones.
    pub(super) async fn revive(&self) -> Result<(), RuntimeError> {
        if !self.launch.config.stays || !self.link().await.is_over() {
            return Ok(());
        }
        let mut link = self.link.write().await;
        // Somebody else may have been first.
        if link.is_over() {
            let (anew, _) = self.launch.find_or_start(&self.table).await?;
            *link = Arc::new(anew);
        }
        Ok(())
    }
}
