//! The audit log.

use chrono::{DateTime, Utc};
use glovebox_store::AuditEntry;
use serde::Serialize;
use utoipa::ToSchema;

/// One entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditView {
    pub(crate) id: String,
    pub(crate) at: DateTime<Utc>,
    /// `user`, `api_key`, `command_line`, `system` or `unknown`.
    pub(crate) actor_kind: String,
    pub(crate) actor: String,
    pub(crate) address: String,
    pub(crate) action: String,
    pub(crate) object_kind: String,
    pub(crate) object_id: Option<String>,
    pub(crate) object: String,
    pub(crate) workspace_id: Option<String>,
    /// The names of what changed; never values.
    pub(crate) fields: Vec<String>,
    pub(crate) request_id: String,
}

impl From<AuditEntry> for AuditView {
    fn from(entry: AuditEntry) -> Self {
        Self {
            id: entry.id.to_string(),
            at: entry.at,
            actor_kind: entry.actor.kind.to_string(),
            actor: entry.actor.name,
            address: entry.actor.address,
            action: entry.action,
            object_kind: entry.object_kind,
            object_id: entry.object_id,
            object: entry.object,
            workspace_id: entry.workspace.map(|id| id.to_string()),
            fields: entry.fields,
            request_id: entry.actor.request_id,
        }
    }
}
