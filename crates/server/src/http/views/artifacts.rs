//! Files that left sandboxes.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::ThreadId;
use glovebox_store::Artifact;
use serde::Serialize;
use utoipa::ToSchema;

/// A file that left a sandbox.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ArtifactView {
    pub(crate) id: String,
    pub(crate) sandbox_id: String,
    pub(crate) execution_id: String,
    /// The thread that it belongs to.
    pub(crate) thread_id: Option<String>,
    /// What that is called.
    pub(crate) thread_title: Option<String>,
    /// Its path in the sandbox, for display: unusual bytes are escaped.
    pub(crate) name: String,
    /// Counts up from 1 with each save of the name in the thread, else in the sandbox.
    pub(crate) version: i64,
    /// Whether no later version of the name is there.
    pub(crate) is_newest: bool,
    /// Whether the caller may make it the newest one again.
    pub(crate) may_restore: bool,
    pub(crate) bytes: u64,
    /// In hexadecimal.
    pub(crate) sha256: String,
    /// By content.
    pub(crate) media_type: String,
    pub(crate) created_at: DateTime<Utc>,
}

impl ArtifactView {
    /// `writable` are the threads that the caller may write into.
    pub(crate) fn of(artifact: Artifact, writable: &BTreeSet<ThreadId>) -> Self {
        let may_write = artifact
            .thread_id
            .is_some_and(|thread| writable.contains(&thread));
        Self {
            name: crate::app::artifacts::shown_name(&artifact.name),
            id: artifact.id.to_string(),
            sandbox_id: artifact.lease_id.to_string(),
            execution_id: artifact.execution_id.to_string(),
            thread_id: artifact.thread_id.map(|id| id.to_string()),
            thread_title: artifact.thread_title,
            version: artifact.version,
            is_newest: artifact.is_newest,
            may_restore: may_write && !artifact.is_newest,
            bytes: artifact.bytes,
            sha256: artifact.sha256,
            media_type: artifact.media_type,
            created_at: artifact.created_at,
        }
    }
}
