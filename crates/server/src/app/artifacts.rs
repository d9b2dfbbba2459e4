//! Artifacts of threads: who may write to them, and an older version made the newest one again.

use std::collections::BTreeSet;

use glovebox_protocol::file::{FileName, escape_for_display};
use glovebox_protocol::ids::{ArtifactId, ThreadId};
use glovebox_protocol::thread::ThreadEventBody;
use glovebox_store::{Access, Artifact, StoreError};

use super::App;
use super::threads::ChatError;

impl App {
    /// The threads of some artifacts that the caller may write into.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn writable_threads(
        &self,
        access: &Access,
        artifacts: &[Artifact],
    ) -> Result<BTreeSet<ThreadId>, StoreError> {
        let threads: BTreeSet<_> = artifacts
            .iter()
            .filter_map(|artifact| artifact.thread_id)
            .collect();
        let mut writable = BTreeSet::new();
        for id in threads {
            let thread = self.store().thread_of(access, id).await?;
            if thread.is_some_and(|thread| thread.may_write(access)) {
                writable.insert(id);
            }
        }
        Ok(writable)
    }

    /// Makes an older version of a thread's artifact the newest one again. Its bytes are charged to
    /// the day like those of any version; they are back in the sandbox with the next run.
    ///
    /// # Errors
    /// When it belongs to no thread, is the newest one, the caller may not write into the thread, or
    /// the day's quota is reached.
    pub async fn restore_artifact(
        &self,
        access: &Access,
        old: &Artifact,
    ) -> Result<Artifact, ChatError> {
        let Some(thread) = old.thread_id else {
            return Err(ChatError::NotRestorable(
                "it belongs to no thread: what code saved outside of chat is not restored",
            ));
        };
        let mut changes = self.store().begin().await?;
        let workspace = changes.hold_workspace(access.workspace()).await?;
        let workspace = workspace.ok_or(ChatError::NotFound("artifact"))?;
        let found = changes.hold_thread(thread).await?;
        let found = found.filter(|thread| thread.may_read(access));
        let found = found.ok_or(ChatError::NotFound("artifact"))?;
        if !found.may_write(access) {
            return Err(ChatError::Forbidden(
                "whoever reads this thread may not write into it",
            ));
        }
        if old.is_newest {
            return Err(ChatError::NotRestorable("it is the newest version already"));
        }
        let left = changes
            .artifact_bytes_left(workspace.id, &workspace.quotas)
            .await?;
        if old.bytes > left {
            return Err(ChatError::Quota {
                name: "quota:max_artifact_bytes_per_day",
                message: format!(
                    "{left} bytes are left of today's {} for artifacts of this workspace",
                    workspace.quotas.max_artifact_bytes_per_day
                ),
                fix: "wait until tomorrow (UTC), or ask a system admin to raise the quota",
            });
        }
        let id = ArtifactId::new();
        let version = changes.restore_artifact(id, old).await?;
        let saved = ThreadEventBody::FileSaved {
            reply: None,
            step: None,
            artifact: id,
            name: shown_name(&old.name),
            version: u32::try_from(version).unwrap_or(u32::MAX),
            bytes: old.bytes,
            media_type: old.media_type.clone(),
            restored_version: u32::try_from(old.version).ok(),
        };
        let seq = changes.tell(thread, &[saved]).await?;
        changes.commit().await?;
        self.live().told(thread, seq);
        let restored = self.store().artifact_of(access, id).await?;
        restored.ok_or(ChatError::NotFound("artifact"))
    }
}

/// A name from a sandbox as it may be shown.
pub(crate) fn shown_name(encoded: &str) -> String {
    match encoded.parse::<FileName>() {
        Ok(name) => name.for_display(),
        Err(_) => escape_for_display(encoded.as_bytes()),
    }
}
