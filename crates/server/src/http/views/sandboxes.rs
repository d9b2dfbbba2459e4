//! Sandboxes, and what runs in them.

use chrono::{DateTime, Utc};
use glovebox_store::{Execution, Lease};
use serde::Serialize;
use utoipa::ToSchema;

/// How large a sandbox is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
#[expect(dead_code, reason = "only described, in the document")]
pub(crate) enum ClassName {
    /// 1 CPU, 1 GiB, 128 processes.
    Small,
    /// 2 CPUs, 2 GiB, 256 processes.
    Medium,
    /// 4 CPUs, 4 GiB, 512 processes.
    Large,
}

/// A sandbox, as the server records it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SandboxView {
    pub(crate) id: String,
    pub(crate) workspace_id: String,
    pub(crate) profile_id: String,
    /// Whose it is; nothing for a service's.
    pub(crate) user_id: Option<String>,
    /// `starting`, `ready`, `suspended` or `ended`.
    pub(crate) state: String,
    /// `SMALL`, `MEDIUM` or `LARGE`.
    pub(crate) class: String,
    pub(crate) created_at: DateTime<Utc>,
    /// When it was last used.
    pub(crate) active_at: DateTime<Utc>,
    /// After how many seconds without use its processes end; its files stay.
    pub(crate) idle_seconds: i64,
    /// When it ends, used or not.
    pub(crate) hard_deadline: DateTime<Utc>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
    /// `asked`, `admin`, `idle`, `hard_limit`, `out_of_memory`, `start_failed` or `gateway_lost`.
    pub(crate) ended_why: Option<String>,
    /// The same in words.
    pub(crate) ended_detail: Option<String>,
}

impl From<Lease> for SandboxView {
    fn from(lease: Lease) -> Self {
        Self {
            id: lease.id.to_string(),
            workspace_id: lease.workspace_id.to_string(),
            profile_id: lease.profile_id.to_string(),
            user_id: lease.user_id.map(|id| id.to_string()),
            state: lease.state.to_string(),
            class: lease.class.to_string(),
            created_at: lease.created_at,
            active_at: lease.active_at,
            idle_seconds: lease.idle_limit_ms / 1000,
            hard_deadline: lease.hard_deadline,
            ended_at: lease.ended_at,
            ended_why: lease.ended_why.map(|why| why.to_string()),
            ended_detail: lease.ended_detail,
        }
    }
}

/// One run of code.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExecutionView {
    pub(crate) id: String,
    pub(crate) sandbox_id: String,
    /// `running` or `ended`.
    pub(crate) state: String,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) ended_at: Option<DateTime<Utc>>,
}

impl From<Execution> for ExecutionView {
    fn from(execution: Execution) -> Self {
        Self {
            id: execution.id.to_string(),
            sandbox_id: execution.lease_id.to_string(),
            state: execution.state.to_string(),
            created_at: execution.created_at,
            ended_at: execution.ended_at,
        }
    }
}
