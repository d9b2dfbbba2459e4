//! The gate: the one place that decides whether code may run.
//!
//! Everything that starts a sandbox or runs code asks here first. The levels are looked at in a
//! fixed order, each fails closed, and each has a name that people and programs see. Everything
//! is read anew each time, so that a change holds for every process at once.

use glovebox_protocol::class::ResourceClass;
use glovebox_protocol::ids::ProfileId;
use glovebox_store::{
    Access, KeyScope, Permission, Profile, ProfileState, QuotaReached, Store, StoreError, Workspace,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The name of the setting that [`Deployment`] is stored under.
pub(crate) const DEPLOYMENT: &str = "deployment";

/// The names of all denials, in the order in which the levels are looked at.
pub(crate) const DENIALS: [&str; 7] = [
    "deployment",
    "profile",
    "workspace",
    "role",
    "quota:max_resource_class",
    "quota:max_concurrent",
    "quota:max_jobs_per_hour",
];

/// What is set for the whole installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deployment {
    /// Whether code may run at all.
    pub code_execution: bool,
    /// The profile of everybody who has no other.
    pub default_profile: Option<ProfileId>,
}

/// Why code may not run.
#[derive(Debug, Clone, PartialEq)]
pub struct Denial {
    /// `deployment`, `profile`, `workspace`, `role`, or `quota:…`.
    pub name: &'static str,
    /// What is the matter, in a sentence.
    pub message: String,
    /// What to do, and who can.
    pub fix: String,
    /// More for programs.
    pub details: Value,
}

/// Where code may run.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The workspace that it counts for.
    pub workspace: Workspace,
    /// The profile that it runs on.
    pub profile: Profile,
    /// The class of a new sandbox.
    pub class: ResourceClass,
}

/// Where a workspace's profile comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileSource {
    /// It has one of its own.
    Workspace,
    /// Its organization has one.
    Organization,
    /// It is the one of everybody who has no other.
    Default,
}

/// What the gate is told by the server's own environment.
#[derive(Debug, Clone, Copy)]
pub struct BreakGlass {
    /// `false` forces code execution off.
    pub sandbox_enabled: bool,
}

fn denial(name: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Denial {
    Denial {
        name,
        message: message.into(),
        fix: fix.into(),
        details: json!({ "denial": name }),
    }
}

/// Decides whether whoever has `access` may run code, in a new sandbox of `class` or in one that
/// is there. Quotas that are counted are looked at where the lease is made, in the same
/// transaction; what else they allow is looked at here.
///
/// # Errors
/// When the store does not answer. A denial is an answer.
pub async fn decide(
    store: &Store,
    break_glass: BreakGlass,
    access: &Access,
    class: Option<ResourceClass>,
) -> Result<Result<Grant, Denial>, StoreError> {
    let deployment: Deployment = store.setting(DEPLOYMENT).await?.unwrap_or_default();
    if let Err(denial) = may_run_at_all(store, break_glass, &deployment).await? {
        return Ok(Err(denial));
    }
    let Some(workspace) = store.workspace(access.workspace()).await? else {
        // Its row is gone since the access was proven.
        return Ok(Err(off_in_workspace("this workspace")));
    };
    let profile = match resolve(store, &deployment, &workspace).await? {
        Some((profile, _)) if profile.state == ProfileState::Active => profile,
        Some((profile, _)) => {
            let message = format!(
                "the runtime profile `{}` of this workspace is {}",
                profile.name, profile.state
            );
            let fix = "ask a system admin to activate it, or to choose another one";
            return Ok(Err(denial("profile", message, fix)));
        }
        None => {
            let message = "this workspace has no runtime profile";
            let fix = "ask a system admin to choose a default profile";
            return Ok(Err(denial("profile", message, fix)));
        }
    };
    if !workspace.code_execution {
        return Ok(Err(off_in_workspace(&workspace.name)));
    }
    if !access.may(Permission::RunCode) || !access.has_scope(KeyScope::CodeExecutionRun) {
        let who = match access.user() {
            Some(_) => format!("the role {}", access.role()),
            None => "this key".into(),
        };
        let message = format!("{who} may not run code in this workspace");
        let fix = "ask an admin of the workspace for the role editor, or use a key with the \
                   scope code_execution:run";
        return Ok(Err(denial("role", message, fix)));
    }
    let class = class.unwrap_or(profile.settings.class);
    if class > workspace.quotas.max_resource_class {
        let message = format!(
            "sandboxes of class {class} are over this workspace's limit of {}",
            workspace.quotas.max_resource_class
        );
        let fix = "ask for a smaller class, or a system admin for a larger quota";
        return Ok(Err(denial("quota:max_resource_class", message, fix)));
    }
    Ok(Ok(Grant {
        workspace,
        profile,
        class,
    }))
}

fn off_in_workspace(name: &str) -> Denial {
    denial(
        "workspace",
        format!("code execution is off in {name}"),
        "ask a system admin to switch it on at Admin → Workspaces",
    )
}

/// The first level: the whole installation.
///
/// # Errors
/// When the store does not answer.
pub async fn may_run_at_all(
    store: &Store,
    break_glass: BreakGlass,
    deployment: &Deployment,
) -> Result<Result<(), Denial>, StoreError> {
    if !break_glass.sandbox_enabled {
        return Ok(Err(denial(
            "deployment",
            "code execution is forced off by the server's environment",
            "whoever runs the server unsets SANDBOX_ENABLED and starts it again",
        )));
    }
    if !deployment.code_execution {
        return Ok(Err(denial(
            "deployment",
            "code execution is switched off",
            "a system admin switches it on at Admin → System → Sandbox",
        )));
    }
    let default = match deployment.default_profile {
        Some(id) => store.profile(id).await?,
        None => None,
    };
    if default.is_some_and(|profile| profile.state == ProfileState::Active) {
        Ok(Ok(()))
    } else {
        Ok(Err(denial(
            "deployment",
            "there is no active default runtime profile",
            "a system admin activates a profile and makes it the default at Admin → System → Sandbox",
        )))
    }
}

/// The profile of a workspace, and where it comes from: its own, else its organization's, else
/// the default. One that is disabled is the answer too: there is no way around it to another.
///
/// # Errors
/// When the store does not answer.
pub async fn resolve(
    store: &Store,
    deployment: &Deployment,
    workspace: &Workspace,
) -> Result<Option<(Profile, ProfileSource)>, StoreError> {
    let of_organization = match workspace.organization_id {
        Some(id) => store.profile_of_organization(id).await?,
        None => None,
    };
    let chosen = workspace
        .profile_id
        .map(|id| (id, ProfileSource::Workspace))
        .or(of_organization.map(|id| (id, ProfileSource::Organization)))
        .or(deployment
            .default_profile
            .map(|id| (id, ProfileSource::Default)));
    let Some((id, source)) = chosen else {
        return Ok(None);
    };
    Ok(store.profile(id).await?.map(|profile| (profile, source)))
}

impl From<QuotaReached> for Denial {
    fn from(reached: QuotaReached) -> Self {
        let QuotaReached { name, limit, used } = reached;
        let (message, fix) = match name {
            "quota:max_concurrent" => (
                format!("this workspace has {used} of {limit} sandboxes at once"),
                "end one that is not needed, or wait until one ends",
            ),
            _ => (
                format!("this workspace has started {used} of {limit} sandboxes in the last hour"),
                "go on in a sandbox that is there, or wait",
            ),
        };
        Self {
            name,
            message,
            fix: format!("{fix}; a system admin can raise the quota"),
            details: json!({ "denial": name, "limit": limit, "used": used }),
        }
    }
}
