//! What the API shows: plain documents, made from what the store and the use cases know.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::ThreadId;
use glovebox_store::{
    ApiKey, Artifact, AuditEntry, CheckRecord, Execution, Lease, Member, Meters, Profile,
    ProfileSettings, Quotas, Session, User, Workspace,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::app::gate::ProfileSource;
use crate::app::profiles::ProfileDetail;
use crate::app::workspaces::CodeExecution;

/// A person.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserView {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) is_system_admin: bool,
    pub(crate) is_disabled: bool,
    pub(crate) created_at: DateTime<Utc>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email,
            name: user.name,
            is_system_admin: user.is_system_admin,
            is_disabled: user.is_disabled,
            created_at: user.created_at,
        }
    }
}

/// A sign-in in one browser.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    pub(crate) id: String,
    /// The network address that it was opened from.
    pub(crate) address: String,
    /// What the browser called itself.
    pub(crate) user_agent: String,
    pub(crate) created_at: DateTime<Utc>,
    /// To a few minutes.
    pub(crate) seen_at: DateTime<Utc>,
    pub(crate) expires_at: DateTime<Utc>,
    /// Whether this very request came with it.
    pub(crate) is_this: bool,
}

impl SessionView {
    pub(crate) fn of(session: Session, this: &Session) -> Self {
        Self {
            is_this: session.id == this.id,
            id: session.id.to_string(),
            address: session.address,
            user_agent: session.user_agent,
            created_at: session.created_at,
            seen_at: session.seen_at,
            expires_at: session.expires_at,
        }
    }
}

/// A key, without its token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiKeyView {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The person it acts as; nothing for a service's.
    pub(crate) user_id: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) created_at: DateTime<Utc>,
    /// To a minute.
    pub(crate) used_at: Option<DateTime<Utc>>,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            user_id: key.user_id.map(|id| id.to_string()),
            scopes: key.scopes.iter().map(ToString::to_string).collect(),
            created_at: key.created_at,
            used_at: key.used_at,
        }
    }
}

/// A member of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberView {
    pub(crate) user_id: String,
    pub(crate) email: String,
    pub(crate) name: String,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub(crate) role: String,
    pub(crate) created_at: DateTime<Utc>,
}

impl From<Member> for MemberView {
    fn from(member: Member) -> Self {
        Self {
            user_id: member.user_id.to_string(),
            email: member.email,
            name: member.name,
            role: member.role.to_string(),
            created_at: member.created_at,
        }
    }
}

/// How much of everything a workspace may use.
#[derive(Debug, Clone, Serialize, serde::Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotasView {
    /// Sandboxes at once; idle ones count.
    #[schema(maximum = 1000)]
    pub(crate) max_concurrent: u32,
    /// `SMALL`, `MEDIUM` or `LARGE`.
    #[schema(value_type = ClassName)]
    pub(crate) max_resource_class: glovebox_protocol::class::ResourceClass,
    /// The longest job, in seconds.
    #[schema(maximum = 604800)]
    pub(crate) max_job_seconds: u32,
    /// Bytes of artifacts in a day (UTC).
    #[schema(maximum = 1125899906842624_i64)]
    pub(crate) max_artifact_bytes_per_day: u64,
    /// New sandboxes in a rolling hour.
    #[schema(maximum = 100000)]
    pub(crate) max_jobs_per_hour: u32,
    /// Bytes of all files that people have brought: attachments and the knowledge base.
    #[schema(maximum = 1125899906842624_i64)]
    pub(crate) max_uploaded_bytes: u64,
}

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

impl From<QuotasView> for Quotas {
    fn from(view: QuotasView) -> Self {
        Self {
            max_concurrent: view.max_concurrent,
            max_resource_class: view.max_resource_class,
            max_job_seconds: view.max_job_seconds,
            max_artifact_bytes_per_day: view.max_artifact_bytes_per_day,
            max_jobs_per_hour: view.max_jobs_per_hour,
            max_uploaded_bytes: view.max_uploaded_bytes,
        }
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

/// A runtime profile, in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileView {
    pub(crate) id: String,
    /// `embedded`, …
    pub(crate) runtime: String,
    pub(crate) name: String,
    /// `draft`, `active` or `disabled`.
    pub(crate) state: String,
    /// To be sent back with a change.
    pub(crate) version: i64,
    #[schema(value_type = Object)]
    pub(crate) settings: ProfileSettings,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) activated_at: Option<DateTime<Utc>>,
}

impl From<Profile> for ProfileView {
    fn from(profile: Profile) -> Self {
        Self {
            id: profile.id.to_string(),
            runtime: profile.runtime,
            name: profile.name,
            state: profile.state.to_string(),
            version: profile.version,
            settings: profile.settings,
            created_at: profile.created_at,
            activated_at: profile.activated_at,
        }
    }
}

/// One look at a profile.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CheckView {
    pub(crate) is_passed: bool,
    /// `checks` of a test, `results` of a canary, or `error` where there are none.
    #[schema(value_type = Object)]
    pub(crate) report: Value,
    pub(crate) taken_at: DateTime<Utc>,
}

impl From<CheckRecord> for CheckView {
    fn from(check: CheckRecord) -> Self {
        Self {
            is_passed: check.is_passed,
            report: check.report,
            taken_at: check.taken_at,
        }
    }
}

/// Somebody has read what a profile does not promise.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AcknowledgementView {
    pub(crate) name: String,
    /// The address of who did.
    pub(crate) by: String,
    pub(crate) at: DateTime<Utc>,
}

/// A profile with its proofs.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProfileDetailView {
    pub(crate) profile: ProfileView,
    pub(crate) is_default: bool,
    pub(crate) test: Option<CheckView>,
    pub(crate) canary: Option<CheckView>,
    pub(crate) acknowledgements: Vec<AcknowledgementView>,
    pub(crate) acknowledgements_required: Vec<String>,
    /// `no_recent_test`, `no_recent_canary`, `ack_required`: what stands in the way of activating.
    pub(crate) blockers: Vec<String>,
}

impl From<ProfileDetail> for ProfileDetailView {
    fn from(detail: ProfileDetail) -> Self {
        let words = |words: Vec<&'static str>| words.into_iter().map(String::from).collect();
        Self {
            profile: detail.profile.into(),
            is_default: detail.is_default,
            test: detail.test.map(CheckView::from),
            canary: detail.canary.map(CheckView::from),
            acknowledgements: detail
                .acknowledgements
                .into_iter()
                .map(|one| AcknowledgementView {
                    name: one.name,
                    by: one.by,
                    at: one.at,
                })
                .collect(),
            acknowledgements_required: words(detail.acknowledgements_required),
            blockers: words(detail.blockers),
        }
    }
}

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
