//! Workspaces: made, switched and bounded by system admins; their members looked after by
//! themselves.

use glovebox_protocol::ids::{ProfileId, UserId, WorkspaceId};
use glovebox_store::{
    Access, Actor, DenialRow, Entry, Member, Meters, Permission, Profile, Quotas, Role, StoreError,
    Transaction, Workspace,
};

use super::App;
use super::account::key_entry;
use super::gate::{self, DEPLOYMENT, Denial, Deployment, ProfileSource};
use super::users::checked_name;

/// How many refusals are shown.
const DENIALS: u32 = 20;

/// The largest quotas that can be set: beyond them a number is a slip.
const MAX_CONCURRENT: u32 = 1_000;

/// Why a workspace was not changed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// There is none, or the caller may not know of it.
    #[error("there is no such workspace")]
    NotFound,
    /// There is no such profile.
    #[error("there is no such profile")]
    NoProfile,
    /// The name is empty or too long.
    #[error("a name has 1 to 100 characters")]
    Name,
    /// A quota is out of its bounds.
    #[error("{quota} {why}")]
    Quota {
        /// Which one.
        quota: &'static str,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The caller's role does not allow it.
    #[error("only admins and owners of the workspace change its members")]
    Forbidden,
    /// Nobody signs in with that address.
    #[error("nobody signs in with that address")]
    NoUser,
    /// It is one.
    #[error("{0} is a member of this workspace already")]
    IsMember(String),
    /// A workspace has an owner.
    #[error("a workspace needs an owner")]
    LastOwner,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Everything about code execution in a workspace.
#[derive(Debug, Clone)]
pub struct CodeExecution {
    /// The workspace.
    pub workspace: Workspace,
    /// Its profile, and where that comes from.
    pub profile: Option<(Profile, ProfileSource)>,
    /// How much of its quotas it uses.
    pub meters: Meters,
    /// The last refusals.
    pub denials: Vec<DenialRow>,
    /// What the gate says of it before it looks at who calls.
    pub denial: Option<Denial>,
}

/// What is to be changed of a workspace; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceChanges {
    /// Its name.
    pub name: Option<String>,
    /// Whether code may run in it.
    pub code_execution: Option<bool>,
    /// A profile of its own; `Some(None)` takes it away.
    pub profile: Option<Option<ProfileId>>,
}

impl App {
    /// Makes a workspace with an owner.
    ///
    /// # Errors
    /// When the name is taken or none, or there is no such user.
    pub async fn create_workspace(
        &self,
        actor: &Actor,
        name: &str,
        owner: UserId,
    ) -> Result<Workspace, WorkspaceError> {
        let name = checked_name(name).map_err(|_| WorkspaceError::Name)?;
        let user = self.store().user(owner).await?;
        user.ok_or(WorkspaceError::NoUser)?;
        let mut changes = self.store().begin().await?;
        let id = make(&mut changes, actor, &name, owner).await?;
        changes.commit().await?;
        self.store()
            .workspace(id)
            .await?
            .ok_or(WorkspaceError::NotFound)
    }

    /// Changes a workspace that was read at `version`. `change` has its say of the present quotas.
    ///
    /// # Errors
    /// When a value is out of its bounds, or somebody else changed it since.
    pub async fn change_workspace(
        &self,
        actor: &Actor,
        id: WorkspaceId,
        version: i64,
        wanted: WorkspaceChanges,
        change: impl FnOnce(&mut Quotas),
    ) -> Result<Workspace, WorkspaceError> {
        let workspace = self.store().workspace(id).await?;
        let mut workspace = workspace.ok_or(WorkspaceError::NotFound)?;
        workspace.version = version;
        let mut fields = Vec::new();
        if let Some(name) = wanted.name {
            let name = checked_name(&name).map_err(|_| WorkspaceError::Name)?;
            if name != workspace.name {
                workspace.name = name;
                fields.push("name");
            }
        }
        if let Some(on) = wanted
            .code_execution
            .filter(|on| *on != workspace.code_execution)
        {
            workspace.code_execution = on;
            fields.push("code_execution");
        }
        let mut quotas = workspace.quotas.clone();
        change(&mut quotas);
        if quotas != workspace.quotas {
            check(&quotas)?;
            fields.extend(changed(&workspace.quotas, &quotas));
            workspace.quotas = quotas;
        }
        if let Some(profile) = wanted
            .profile
            .filter(|profile| *profile != workspace.profile_id)
        {
            if let Some(id) = profile {
                let found = self.store().profile(id).await?;
                found.ok_or(WorkspaceError::NoProfile)?;
            }
            workspace.profile_id = profile;
            fields.push("profile");
        }
        if !fields.is_empty() {
            let mut changes = self.store().begin().await?;
            changes.update_workspace(&workspace).await?;
            changes
                .record(
                    actor,
                    entry("workspace.update", id, &workspace.name, &fields),
                )
                .await?;
            changes.commit().await?;
        }
        self.store()
            .workspace(id)
            .await?
            .ok_or(WorkspaceError::NotFound)
    }

    /// Everything about code execution in a workspace.
    ///
    /// # Errors
    /// When there is no such workspace.
    pub async fn code_execution(&self, id: WorkspaceId) -> Result<CodeExecution, WorkspaceError> {
        let store = self.store();
        let workspace = store.workspace(id).await?;
        let workspace = workspace.ok_or(WorkspaceError::NotFound)?;
        let deployment: Deployment = store.setting(DEPLOYMENT).await?.unwrap_or_default();
        let denial = gate::may_run_at_all(store, self.break_glass(), &deployment).await?;
        Ok(CodeExecution {
            profile: gate::resolve(store, &deployment, &workspace).await?,
            meters: store.meters(id).await?,
            denials: store.denials(id, DENIALS).await?,
            denial: denial.err(),
            workspace,
        })
    }

    /// The members of the caller's workspace.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn members(&self, access: &Access) -> Result<Vec<Member>, WorkspaceError> {
        Ok(self.store().members(access.workspace()).await?)
    }

    /// Makes a user, who is there already, a member.
    ///
    /// # Errors
    /// When the caller may not, or nobody signs in with the address.
    pub async fn add_member(
        &self,
        actor: &Actor,
        access: &Access,
        email: &str,
        role: Role,
    ) -> Result<(), WorkspaceError> {
        may_grant(access, role)?;
        let email = email.trim().to_lowercase();
        let user = self.store().user_by_email(&email).await?;
        let user = user.ok_or(WorkspaceError::NoUser)?;
        let mut changes = self.store().begin().await?;
        let added = changes.add_member(access.workspace(), user.id, role).await;
        if matches!(added, Err(StoreError::Taken { .. })) {
            return Err(WorkspaceError::IsMember(email));
        }
        added?;
        changes
            .record(
                actor,
                member_entry("member.add", access.workspace(), user.id, &email, &["role"]),
            )
            .await?;
        changes.commit().await?;
        Ok(())
    }

    /// Gives a member another role, or takes it out of the workspace. What it runs there is ended
    /// where it may not run code any more.
    ///
    /// # Errors
    /// When the caller may not, there is no such member, or no owner would be left.
    pub async fn change_member(
        &self,
        actor: &Actor,
        access: &Access,
        user: UserId,
        role: Option<Role>,
    ) -> Result<(), WorkspaceError> {
        let workspace = access.workspace();
        let email = self.store().user(user).await?.map(|user| user.email);
        let email = email.ok_or(WorkspaceError::NotFound)?;
        let mut changes = self.store().begin().await?;
        changes.hold_workspace(workspace).await?;
        let before = changes.role_of(workspace, user).await?;
        let before = before.ok_or(WorkspaceError::NotFound)?;
        // Leaving by oneself needs no right.
        let is_leaving = role.is_none() && access.user() == Some(user);
        if !is_leaving {
            may_grant(access, before)?;
            may_grant(access, role.unwrap_or(Role::Viewer))?;
        }
        let action = match role {
            Some(role) if role == before => return Ok(()),
            Some(role) => {
                changes.set_role(workspace, user, role).await?;
                "member.update"
            }
            None => {
                changes.remove_member(workspace, user).await?;
                "member.remove"
            }
        };
        if role.is_none() {
            // Or they would be good again with the next membership.
            for (id, name) in changes.revoke_api_keys_of(workspace, user).await? {
                let entry = key_entry("api_key.revoke", id, &name, workspace, &[]);
                changes.record(actor, entry).await?;
            }
        }
        if changes.count_owners(workspace).await? == 0 {
            return Err(WorkspaceError::LastOwner);
        }
        let fields: &[&str] = if role.is_some() { &["role"] } else { &[] };
        changes
            .record(actor, member_entry(action, workspace, user, &email, fields))
            .await?;
        if role.is_some_and(|role| role.may(Permission::RunCode)) {
            changes.commit().await?;
        } else {
            self.commit_and_end_work(changes, user, Some(workspace))
                .await?;
        }
        Ok(())
    }
}

/// Makes a workspace with an owner, and writes it down.
pub(crate) async fn make(
    changes: &mut Transaction,
    actor: &Actor,
    name: &str,
    owner: UserId,
) -> Result<WorkspaceId, StoreError> {
    let id = changes.create_workspace(name).await?;
    changes.add_member(id, owner, Role::Owner).await?;
    let made = entry("workspace.create", id, name, &["name", "owner"]);
    changes.record(actor, made).await?;
    Ok(id)
}

/// Admins look after members, and nobody gives or takes more than they have themselves.
fn may_grant(access: &Access, role: Role) -> Result<(), WorkspaceError> {
    if access.may(Permission::Manage) && role <= access.role() {
        Ok(())
    } else {
        Err(WorkspaceError::Forbidden)
    }
}

fn check(quotas: &Quotas) -> Result<(), WorkspaceError> {
    let rules = [
        (
            "max_concurrent",
            quotas.max_concurrent <= MAX_CONCURRENT,
            "is at most 1000",
        ),
        (
            "max_jobs_per_hour",
            quotas.max_jobs_per_hour <= 100_000,
            "is at most 100000",
        ),
        (
            "max_job_seconds",
            quotas.max_job_seconds <= 604_800,
            "is at most 604800",
        ),
        (
            "max_artifact_bytes_per_day",
            quotas.max_artifact_bytes_per_day <= 1 << 50,
            "is at most 1 PiB",
        ),
        (
            "max_uploaded_bytes",
            quotas.max_uploaded_bytes <= 1 << 50,
            "is at most 1 PiB",
        ),
    ];
    match rules.into_iter().find(|(_, holds, _)| !holds) {
        None => Ok(()),
        Some((quota, _, why)) => Err(WorkspaceError::Quota { quota, why }),
    }
}

/// The names of the quotas in which two differ.
fn changed(before: &Quotas, after: &Quotas) -> Vec<&'static str> {
    let pairs = [
        (
            "quotas.max_concurrent",
            before.max_concurrent != after.max_concurrent,
        ),
        (
            "quotas.max_resource_class",
            before.max_resource_class != after.max_resource_class,
        ),
        (
            "quotas.max_job_seconds",
            before.max_job_seconds != after.max_job_seconds,
        ),
        (
            "quotas.max_artifact_bytes_per_day",
            before.max_artifact_bytes_per_day != after.max_artifact_bytes_per_day,
        ),
        (
            "quotas.max_jobs_per_hour",
            before.max_jobs_per_hour != after.max_jobs_per_hour,
        ),
        (
            "quotas.max_uploaded_bytes",
            before.max_uploaded_bytes != after.max_uploaded_bytes,
        ),
    ];
    pairs
        .into_iter()
        .filter_map(|(name, differs)| differs.then_some(name))
        .collect()
}

fn entry<'a>(action: &'a str, id: WorkspaceId, name: &'a str, fields: &'a [&'a str]) -> Entry<'a> {
    Entry {
        action,
        object_kind: "workspace",
        object_id: Some(id.to_string()),
        object: name,
        workspace: Some(id),
        fields,
    }
}

pub(crate) fn member_entry<'a>(
    action: &'a str,
    workspace: WorkspaceId,
    user: UserId,
    email: &'a str,
    fields: &'a [&'a str],
) -> Entry<'a> {
    Entry {
        action,
        object_kind: "member",
        object_id: Some(user.to_string()),
        object: email,
        workspace: Some(workspace),
        fields,
    }
}
