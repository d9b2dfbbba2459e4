//! The hard limit of sandboxes: what is in one is collected a little before, and then it ends.
//!
//! Its gateway ends it at the limit whatever happens here. So code that still runs is ended some time
//! before, by whoever drives it; of a sandbox in which nothing runs the worker collects.

use chrono::{DateTime, TimeDelta, Utc};
use glovebox_protocol::event::EventBody;
use glovebox_protocol::file::FileName;
use glovebox_protocol::ids::{ArtifactId, ThreadId};
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{EndedWhy, Lease, LeaseState, StoreError};
use tokio::time::Instant;

use super::App;
use super::collect::Collection;
use super::sandboxes::SandboxError;
use crate::failure::chain;

/// How long before its hard limit a sandbox takes no code any more, at most: of one that lives
/// shortly a quarter of its life.
const WINDOW: TimeDelta = TimeDelta::seconds(30);

/// For how long after its hard limit somebody may still be collecting.
const OVERTIME: TimeDelta = TimeDelta::seconds(10);

/// How long a last collection may take at least, where its time was noticed late.
const LEAST: TimeDelta = TimeDelta::seconds(5);

/// From when on a sandbox takes no code, so that what is in it can be collected before its limit.
pub(crate) fn last_call(lease: &Lease) -> DateTime<Utc> {
    let life = lease.hard_deadline - lease.created_at;
    lease.hard_deadline - WINDOW.min(life / 4)
}

/// Whether nobody may be collecting any more: a sandbox that is still there has to go.
pub(crate) fn is_over(lease: &Lease) -> bool {
    Utc::now() >= lease.hard_deadline + OVERTIME
}

/// Until when a collection has to be done.
pub(crate) fn collect_until(lease: &Lease) -> Instant {
    let left = (lease.hard_deadline - Utc::now()).max(LEAST);
    Instant::now() + left.to_std().unwrap_or_default()
}

/// Why a sandbox ends that has reached its limit.
pub(crate) fn words(lease: &Lease) -> String {
    let seconds = (lease.hard_deadline - lease.created_at).as_seconds_f64();
    format!(
        "it reached its hard limit of {seconds:.0} s, after which every sandbox of its profile ends"
    )
}

impl App {
    /// Ends a sandbox that has reached its hard limit, or is about to: what is in it is collected
    /// first. Where somebody else does that already, they end it.
    ///
    /// # Errors
    /// When the store fails, or the runtime does not confirm that it has ended.
    pub(crate) async fn end_at_hard_limit(&self, lease: &Lease) -> Result<(), SandboxError> {
        let is_ours = self.store().begin_last_collection(lease.id).await?;
        let somebody_may = lease.state != LeaseState::Starting && !is_over(lease);
        if !is_ours && somebody_may {
            return Ok(());
        }
        let mut detail = words(lease);
        if is_ours && let Some(missing) = self.collect_last(lease).await? {
            tracing::warn!(sandbox = %lease.id, missing, "a last collection was not whole");
            detail = format!("{detail}; {missing}");
        }
        tracing::info!(sandbox = %lease.id, detail, "a sandbox ends at its hard limit");
        self.remove_sandbox(lease.id, EndedWhy::HardLimit, &detail)
            .await
    }

    /// Collects what was saved since the last execution has ended. Gives what could not be, in words.
    async fn collect_last(&self, lease: &Lease) -> Result<Option<String>, StoreError> {
        let store = self.store();
        // Where nothing ran there is nothing but what was put in.
        let Some(newest) = store.newest_execution(lease.id).await? else {
            return Ok(None);
        };
        let profile = store.profile(lease.profile_id).await?;
        let workspace = store.workspace(lease.workspace_id).await?;
        let (Some(profile), Some(workspace)) = (profile, workspace) else {
            return Ok(None);
        };
        let collection = Collection {
            settings: &profile.settings,
            workspace: &workspace,
            until: collect_until(lease),
        };
        let collected = self.collect(lease.id, newest.id, &collection).await;
        let events = match collected {
            Ok(events) => events,
            Err(error) => {
                let error = chain(&error);
                tracing::error!(sandbox = %lease.id, error, "collecting for the last time");
                let missing = "the server could not store what was saved since the last run";
                return Ok(Some(missing.into()));
            }
        };
        let (mut saved, mut missing) = (Vec::new(), None);
        for event in events {
            match event {
                EventBody::Artifact { name, saved_as, .. } => saved.push((name, saved_as)),
                EventBody::NotCollected { message } => missing = Some(message),
                _ => {}
            }
        }
        if let Some(thread) = lease.thread_id {
            self.tell_saved(thread, saved).await?;
        }
        Ok(missing)
    }

    /// Tells a thread of files that nobody waits for.
    async fn tell_saved(
        &self,
        thread: ThreadId,
        saved: Vec<(FileName, String)>,
    ) -> Result<(), StoreError> {
        let mut told = Vec::with_capacity(saved.len());
        for (name, id) in saved {
            let Ok(id) = id.parse::<ArtifactId>() else {
                continue;
            };
            let Some(artifact) = self.store().artifact(id).await? else {
                continue;
            };
            told.push(ThreadEventBody::FileSaved {
                reply: None,
                step: None,
                artifact: id,
                name: name.for_display(),
                version: u32::try_from(artifact.version).unwrap_or(u32::MAX),
                bytes: artifact.bytes,
                media_type: artifact.media_type,
                restored_version: None,
            });
        }
        if !told.is_empty() {
            let seq = self.store().tell(thread, &told).await?;
            self.live().told(thread, seq);
        }
        Ok(())
    }
}
