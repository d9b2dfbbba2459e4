//! Workspaces: their quotas, what they use of them, and whether code runs in them.

use chrono::{DateTime, Utc};
use glovebox_protocol::class::ResourceClass;
use glovebox_store::{Meters, Quotas, Workspace};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ClassName;
use crate::app::gate::ProfileSource;
use crate::app::workspaces::CodeExecution;
use crate::http::body::put;

/// How much of everything a workspace may use.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct QuotasView {
    /// Sandboxes at once; idle ones count.
    pub(crate) max_concurrent: u32,
    /// `SMALL`, `MEDIUM` or `LARGE`.
    #[schema(value_type = ClassName)]
    pub(crate) max_resource_class: ResourceClass,
    /// The longest job, in seconds.
    pub(crate) max_job_seconds: u32,
    /// Bytes of artifacts in a day (UTC).
    pub(crate) max_artifact_bytes_per_day: u64,
    /// New sandboxes in a rolling hour.
    pub(crate) max_jobs_per_hour: u32,
    /// Bytes of all files that people have brought: attachments and the knowledge base.
    pub(crate) max_uploaded_bytes: u64,
}

impl From<Quotas> for QuotasView {
    fn from(quotas: Quotas) -> Self {
        Self {
            max_concurrent: quotas.max_concurrent,
            max_resource_class: quotas.max_resource_class,
            max_job_seconds: quotas.max_job_seconds,
            max_artifact_bytes_per_day: quotas.max_artifact_bytes_per_day,
            max_jobs_per_hour: quotas.max_jobs_per_hour,
            max_uploaded_bytes: quotas.max_uploaded_bytes,
        }
    }
}

/// What is to be changed of the quotas of a workspace. What is left out, or null, stays as it is.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ChangeQuotas {
    #[schema(maximum = 1000)]
    max_concurrent: Option<u32>,
    #[schema(value_type = Option<ClassName>)]
    max_resource_class: Option<ResourceClass>,
    #[schema(maximum = 604800)]
    max_job_seconds: Option<u32>,
    #[schema(maximum = 1125899906842624_i64)]
    max_artifact_bytes_per_day: Option<u64>,
    #[schema(maximum = 100000)]
    max_jobs_per_hour: Option<u32>,
    #[schema(maximum = 1125899906842624_i64)]
    max_uploaded_bytes: Option<u64>,
}

impl ChangeQuotas {
    /// Writes what is to be changed into quotas that are there.
    pub(crate) fn apply(self, quotas: &mut Quotas) {
        // Taken apart, so that a quota that is forgotten here does not compile.
        let Self {
            max_concurrent,
            max_resource_class,
            max_job_seconds,
            max_artifact_bytes_per_day,
            max_jobs_per_hour,
            max_uploaded_bytes,
        } = self;
        put(&mut quotas.max_concurrent, max_concurrent);
        put(&mut quotas.max_resource_class, max_resource_class);
        put(&mut quotas.max_job_seconds, max_job_seconds);
        put(
            &mut quotas.max_artifact_bytes_per_day,
            max_artifact_bytes_per_day,
        );
        put(&mut quotas.max_jobs_per_hour, max_jobs_per_hour);
        put(&mut quotas.max_uploaded_bytes, max_uploaded_bytes);
    }
}

/// A workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkspaceView {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) organization_id: Option<String>,
    /// A profile of its own.
    pub(crate) profile_id: Option<String>,
    /// Whether code may run in it.
    pub(crate) code_execution: bool,
    pub(crate) quotas: QuotasView,
    /// To be sent back with a change.
    pub(crate) version: i64,
    pub(crate) created_at: DateTime<Utc>,
}

impl From<Workspace> for WorkspaceView {
    fn from(workspace: Workspace) -> Self {
        Self {
            id: workspace.id.to_string(),
            name: workspace.name,
            organization_id: workspace.organization_id.map(|id| id.to_string()),
            profile_id: workspace.profile_id.map(|id| id.to_string()),
            code_execution: workspace.code_execution,
            quotas: workspace.quotas.into(),
            version: workspace.version,
            created_at: workspace.created_at,
        }
    }
}

/// How much of its quotas a workspace uses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetersView {
    /// Sandboxes that count now.
    pub(crate) concurrent: u64,
    /// Sandboxes made in the last hour.
    pub(crate) started_last_hour: u64,
    /// Bytes of artifacts since midnight (UTC).
    pub(crate) artifact_bytes_today: u64,
    /// Bytes of attachments and of the knowledge base.
    pub(crate) uploaded_bytes: u64,
}

impl From<Meters> for MetersView {
    fn from(meters: Meters) -> Self {
        Self {
            concurrent: meters.concurrent,
            started_last_hour: meters.started_last_hour,
            artifact_bytes_today: meters.artifact_bytes_today,
            uploaded_bytes: meters.uploaded_bytes,
        }
    }
}

/// One refusal by the gate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DenialView {
    /// `deployment`, `profile`, `workspace`, `role`, or `quota:…`.
    pub(crate) name: String,
    /// Who was refused.
    pub(crate) actor: String,
    pub(crate) at: DateTime<Utc>,
}

/// Why code cannot run in a workspace at all.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeniedView {
    pub(crate) name: String,
    pub(crate) message: String,
    pub(crate) fix: String,
}

/// Everything about code execution in a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CodeExecutionView {
    pub(crate) workspace: WorkspaceView,
    /// The name of the profile that its sandboxes are made on.
    pub(crate) profile_name: Option<String>,
    /// Whether sandboxes are made on it: `draft`, `active` or `disabled`.
    pub(crate) profile_state: Option<String>,
    /// Where the profile comes from.
    pub(crate) profile_source: Option<ProfileSource>,
    pub(crate) meters: MetersView,
    /// The last refusals, the newest first.
    pub(crate) denials: Vec<DenialView>,
    /// What stands in the way of everybody, whatever their workspace.
    pub(crate) deployment_denial: Option<DeniedView>,
}

impl From<CodeExecution> for CodeExecutionView {
    fn from(all: CodeExecution) -> Self {
        let profile = all.profile.as_ref().map(|(profile, _)| profile);
        Self {
            profile_name: profile.map(|profile| profile.name.clone()),
            profile_state: profile.map(|profile| profile.state.to_string()),
            profile_source: all.profile.as_ref().map(|(_, source)| *source),
            workspace: all.workspace.into(),
            meters: all.meters.into(),
            denials: all
                .denials
                .into_iter()
                .map(|row| DenialView {
                    name: row.name,
                    actor: row.actor,
                    at: row.at,
                })
                .collect(),
            deployment_denial: all.denial.map(|denial| DeniedView {
                name: denial.name.into(),
                message: denial.message,
                fix: denial.fix,
            }),
        }
    }
}
