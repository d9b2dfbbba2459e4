//! Runtime profiles: proven, acknowledged, activated; their settings.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use glovebox_client::{ClientError, canary};
use glovebox_protocol::gateway::CheckStatus;
use glovebox_protocol::ids::ProfileId;
use glovebox_store::{
    Acknowledgement, Actor, CheckKind, CheckRecord, Entry, Profile, ProfileSettings, ProfileState,
    StoreError,
};
use serde_json::json;

use super::App;
use super::gate::{DEPLOYMENT, Deployment};
use super::profile_settings::{changed, check};
use crate::failure::chain;

/// What has to be acknowledged of a runtime that shares the host's kernel.
pub const SHARED_KERNEL: &str = "shared_kernel";

/// How old a proof may be, in hours.
const FRESH_HOURS: i64 = 24;

/// A profile with what is known of it.
#[derive(Debug, Clone)]
pub struct ProfileDetail {
    /// The profile.
    pub profile: Profile,
    /// The last test.
    pub test: Option<CheckRecord>,
    /// The last canary.
    pub canary: Option<CheckRecord>,
    /// What has been acknowledged.
    pub acknowledgements: Vec<Acknowledgement>,
    /// What has to be.
    pub acknowledgements_required: Vec<&'static str>,
    /// What stands in the way of activating it.
    pub blockers: Vec<&'static str>,
    /// Whether it is the default.
    pub is_default: bool,
}

/// Why a profile was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// There is none.
    #[error("there is no such profile")]
    NotFound,
    /// The server's environment has locked profiles.
    #[error("profiles are locked by the server's environment")]
    Locked,
    /// Something is missing before it can be activated.
    #[error("the profile cannot be activated: {}", .0.join(", "))]
    Blocked(Vec<&'static str>),
    /// One that is not active is no default.
    #[error("the profile `{0}` is not active, and so cannot be the default")]
    NotActive(String),
    /// Without a default profile nothing could run.
    #[error("code execution cannot be switched on: there is no default profile")]
    NoDefault,
    /// It is the default, and so cannot be disabled.
    #[error("the default profile cannot be disabled")]
    IsDefault,
    /// A value is out of its bounds.
    #[error("{setting} {why}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What is wrong.
        why: String,
    },
    /// Nothing of that name is to be acknowledged.
    #[error("there is nothing of that name to acknowledge")]
    UnknownAcknowledgement,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runtime failed.
    #[error(transparent)]
    Runtime(#[from] ClientError),
}

impl App {
    /// All profiles with what is known of them, by age.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn profile_details(&self) -> Result<Vec<ProfileDetail>, ProfileError> {
        let mut details = Vec::new();
        for profile in self.store().profiles().await? {
            details.push(self.profile_detail(profile.id).await?);
        }
        Ok(details)
    }

    /// A profile with what is known of it.
    ///
    /// # Errors
    /// When there is none, or the store fails.
    pub async fn profile_detail(&self, id: ProfileId) -> Result<ProfileDetail, ProfileError> {
        let store = self.store();
        let profile = store.profile(id).await?.ok_or(ProfileError::NotFound)?;
        let test = store.last_check(id, CheckKind::Test).await?;
        let canary = store.last_check(id, CheckKind::Canary).await?;
        let acknowledgements = store.acknowledgements(id).await?;
        let deployment: Deployment = store.setting(DEPLOYMENT).await?.unwrap_or_default();
        let required = vec![SHARED_KERNEL];
        // What was proven of another runtime than the gateway's counts for nothing now.
        let is_driven = self.is_driven(&profile);
        let [tested, reached] = [&test, &canary].map(|check| check.as_ref().filter(|_| is_driven));
        let blockers = blockers(tested, reached, &acknowledgements, &required);
        Ok(ProfileDetail {
            is_default: deployment.default_profile == Some(id),
            profile,
            test,
            canary,
            acknowledgements,
            acknowledgements_required: required,
            blockers,
        })
    }

    /// Looks at the profile's runtime and keeps what it finds.
    ///
    /// # Errors
    /// When there is no such profile. That the runtime is not as it has to be is a result.
    pub async fn test_profile(
        &self,
        actor: &Actor,
        id: ProfileId,
    ) -> Result<ProfileDetail, ProfileError> {
        self.unlocked()?;
        let profile = self.store().profile(id).await?;
        let profile = profile.ok_or(ProfileError::NotFound)?;
        let (is_passed, report) = match self.gateway().preflight().await {
            _ if !self.is_driven(&profile) => (false, self.another_runtime(&profile)),
            Ok(preflight) => {
                let passed = preflight.status() != CheckStatus::Fail;
                (passed, json!({ "checks": preflight.checks }))
            }
            Err(error) => (false, json!({ "error": chain(&error) })),
        };
        self.keep_check(actor, &profile, CheckKind::Test, is_passed, &report)
            .await?;
        self.profile_detail(id).await
    }

    /// Lets a throwaway sandbox of the profile try what none may reach, and keeps what came of it.
    ///
    /// # Errors
    /// When there is no such profile. That something was reached is a result.
    pub async fn run_canary(
        &self,
        actor: &Actor,
        id: ProfileId,
    ) -> Result<ProfileDetail, ProfileError> {
        self.unlocked()?;
        let profile = self.store().profile(id).await?;
        let profile = profile.ok_or(ProfileError::NotFound)?;
        let proven = canary::prove(
            self.gateway(),
            &Arc::clone(self.signing()),
            self.installation(),
        )
        .await;
        let (is_passed, report) = match proven {
            _ if !self.is_driven(&profile) => (false, self.another_runtime(&profile)),
            Ok(report) => {
                let passed = report.wrong().next().is_none();
                (passed, json!({ "results": report.results }))
            }
            Err(error) => (false, json!({ "error": chain(&error) })),
        };
        self.keep_check(actor, &profile, CheckKind::Canary, is_passed, &report)
            .await?;
        self.profile_detail(id).await
    }

    /// What is found of a profile of a runtime that this server's gateway does not drive.
    fn another_runtime(&self, profile: &Profile) -> serde_json::Value {
        let driven = self.config().gateway.runtime.name();
        json!({ "error": format!(
            "the profile is of the runtime {}, and this server drives {driven}; start it with \
             --runtime {}, or use a profile of {driven}",
            profile.runtime, profile.runtime
        ) })
    }

    async fn keep_check(
        &self,
        actor: &Actor,
        profile: &Profile,
        kind: CheckKind,
        is_passed: bool,
        report: &serde_json::Value,
    ) -> Result<(), StoreError> {
        let action = format!("profile.{kind}");
        let mut changes = self.store().begin().await?;
        changes
            .keep_check(profile.id, kind, is_passed, report)
            .await?;
        changes
            .record(actor, entry(&action, profile.id, &profile.name, &[]))
            .await?;
        changes.commit().await
    }

    /// Keeps that a person has read what the profile does not promise.
    ///
    /// # Errors
    /// When there is no such profile, or nothing of that name to acknowledge.
    pub async fn acknowledge(
        &self,
        actor: &Actor,
        user: glovebox_protocol::ids::UserId,
        id: ProfileId,
        name: &str,
    ) -> Result<ProfileDetail, ProfileError> {
        self.unlocked()?;
        if name != SHARED_KERNEL {
            return Err(ProfileError::UnknownAcknowledgement);
        }
        let profile = self.store().profile(id).await?;
        let profile = profile.ok_or(ProfileError::NotFound)?;
        let mut changes = self.store().begin().await?;
        changes.acknowledge(id, name, user).await?;
        let fields = [name];
        changes
            .record(
                actor,
                entry("profile.acknowledge", id, &profile.name, &fields),
            )
            .await?;
        changes.commit().await?;
        self.profile_detail(id).await
    }

    /// Lets sandboxes be made on a profile.
    ///
    /// # Errors
    /// When something stands in the way.
    pub async fn activate_profile(
        &self,
        actor: &Actor,
        id: ProfileId,
    ) -> Result<ProfileDetail, ProfileError> {
        self.unlocked()?;
        let detail = self.profile_detail(id).await?;
        if !detail.blockers.is_empty() {
            return Err(ProfileError::Blocked(detail.blockers));
        }
        let mut profile = detail.profile;
        profile.state = ProfileState::Active;
        profile.activated_at = Some(Utc::now());
        self.keep_profile(actor, &profile, "profile.activate", &["state"])
            .await
    }

    /// Lets no more sandboxes be made on a profile. Those that run end by their limits.
    ///
    /// # Errors
    /// When it is the default.
    pub async fn disable_profile(
        &self,
        actor: &Actor,
        id: ProfileId,
    ) -> Result<ProfileDetail, ProfileError> {
        self.unlocked()?;
        let profile = self.store().profile(id).await?;
        let mut profile = profile.ok_or(ProfileError::NotFound)?;
        profile.state = ProfileState::Disabled;
        let mut changes = self.store().begin().await?;
        // The profile first and the deployment then, as whoever makes it the default does.
        changes.update_profile(&profile).await?;
        let deployment: Deployment = changes.setting(DEPLOYMENT).await?.unwrap_or_default();
        if deployment.default_profile == Some(id) {
            return Err(ProfileError::IsDefault);
        }
        changes
            .record(
                actor,
                entry("profile.disable", id, &profile.name, &["state"]),
            )
            .await?;
        changes.commit().await?;
        self.profile_detail(id).await
    }

    /// Changes name and settings of a profile that was read at `version`. `change` has its say of the
    /// present settings.
    ///
    /// # Errors
    /// When a value is out of its bounds, or somebody else changed it since.
    pub async fn change_profile(
        &self,
        actor: &Actor,
        id: ProfileId,
        version: i64,
        name: Option<String>,
        change: impl FnOnce(&mut ProfileSettings),
    ) -> Result<ProfileDetail, ProfileError> {
        self.unlocked()?;
        let profile = self.store().profile(id).await?;
        let mut profile = profile.ok_or(ProfileError::NotFound)?;
        profile.version = version;
        let mut fields = Vec::new();
        if let Some(name) = name.filter(|name| *name != profile.name) {
            if name.trim().is_empty() || name.chars().count() > 80 {
                return Err(ProfileError::Setting {
                    setting: "name",
                    why: "has 1 to 80 characters".into(),
                });
            }
            profile.name = name;
            fields.push("name".to_owned());
        }
        let mut settings = profile.settings.clone();
        change(&mut settings);
        let changed = changed(&profile.settings, &settings)?;
        if !changed.is_empty() {
            check(&settings)?;
            fields.extend(changed);
            profile.settings = settings;
        }
        if fields.is_empty() {
            return self.profile_detail(id).await;
        }
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        self.keep_profile(actor, &profile, "profile.update", &fields)
            .await
    }

    /// Writes a changed profile back, and into the audit log what changed.
    async fn keep_profile(
        &self,
        actor: &Actor,
        profile: &Profile,
        action: &str,
        fields: &[&str],
    ) -> Result<ProfileDetail, ProfileError> {
        let mut changes = self.store().begin().await?;
        changes.update_profile(profile).await?;
        changes
            .record(actor, entry(action, profile.id, &profile.name, fields))
            .await?;
        changes.commit().await?;
        self.profile_detail(profile.id).await
    }

    /// Whether the server's environment lets the console change profiles.
    pub(super) fn unlocked(&self) -> Result<(), ProfileError> {
        if self.config().sandbox_gui_config {
            Ok(())
        } else {
            Err(ProfileError::Locked)
        }
    }
}

pub(super) fn entry<'a>(
    action: &'a str,
    id: ProfileId,
    name: &'a str,
    fields: &'a [&'a str],
) -> Entry<'a> {
    Entry {
        action,
        object_kind: "profile",
        object_id: Some(id.to_string()),
        object: name,
        workspace: None,
        fields,
    }
}

fn blockers(
    test: Option<&CheckRecord>,
    canary: Option<&CheckRecord>,
    acknowledged: &[Acknowledgement],
    required: &[&'static str],
) -> Vec<&'static str> {
    let oldest = Utc::now() - TimeDelta::hours(FRESH_HOURS);
    let is_proof = |check: Option<&CheckRecord>| {
        check.is_some_and(|check| check.is_passed && check.taken_at >= oldest)
    };
    let mut blockers = Vec::new();
    if !is_proof(test) {
        blockers.push("no_recent_test");
    }
    if !is_proof(canary) {
        blockers.push("no_recent_canary");
    }
    let is_acknowledged = |name: &&str| acknowledged.iter().any(|one| one.name == **name);
    if !required.iter().all(is_acknowledged) {
        blockers.push("ack_required");
    }
    blockers
}
