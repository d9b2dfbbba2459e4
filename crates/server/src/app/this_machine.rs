//! The profile of the runtime that this server's own gateway drives.
//!
//! There is one for each runtime that it has driven. What the others promised was proven of another
//! runtime: nothing runs on them any more until they are proven anew.

use glovebox_protocol::agent_config::Start;
use glovebox_store::{Actor, Profile, ProfileSettings, ProfileState, StoreError};

use super::App;
use super::profiles::entry;
use crate::config::MachineRuntime;

/// What the profile of a runtime of this machine is called at first.
const fn first_name(runtime: &MachineRuntime) -> &'static str {
    match runtime {
        MachineRuntime::Embedded => "This machine",
        MachineRuntime::Docker { .. } => "This machine (Docker)",
    }
}

/// What is set in it at first.
fn first_settings(runtime: &MachineRuntime) -> ProfileSettings {
    match runtime {
        MachineRuntime::Embedded => ProfileSettings::default(),
        // Containers have no templates.
        MachineRuntime::Docker { .. } => ProfileSettings {
            start: Start::Fresh,
            ..ProfileSettings::default()
        },
    }
}

impl App {
    /// Makes sure that there is a profile of the runtime that this machine's gateway drives, and that
    /// no sandbox is made on one of another runtime. Of several servers that do it at once, one does.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn ensure_this_machine(&self) -> Result<(), StoreError> {
        let runtime = &self.config().gateway.runtime;
        let profiles = self.store().profiles().await?;
        let (own, others): (Vec<_>, Vec<_>) = profiles
            .into_iter()
            .partition(|profile| self.is_driven(profile));
        for profile in others {
            if profile.state == ProfileState::Active {
                self.disable_other(profile).await?;
            }
        }
        if !own.is_empty() {
            return Ok(());
        }
        let name = first_name(runtime);
        let mut changes = self.store().begin().await?;
        let made = changes
            .create_profile(runtime.name(), name, &first_settings(runtime))
            .await;
        match made {
            Ok(id) => {
                let entry = entry("profile.create", id, name, &["name", "runtime"]);
                changes.record(&Actor::system(), entry).await?;
                changes.commit().await
            }
            Err(StoreError::Taken { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether this server's gateway drives the runtime of a profile.
    pub(crate) fn is_driven(&self, profile: &Profile) -> bool {
        profile.runtime == self.config().gateway.runtime.name()
    }

    async fn disable_other(&self, mut profile: Profile) -> Result<(), StoreError> {
        profile.state = ProfileState::Disabled;
        let mut changes = self.store().begin().await?;
        match changes.update_profile(&profile).await {
            Ok(()) => {}
            // Another server has just done it.
            Err(StoreError::Conflict { .. }) => return Ok(()),
            Err(error) => return Err(error),
        }
        let entry = entry("profile.disable", profile.id, &profile.name, &["state"]);
        changes.record(&Actor::system(), entry).await?;
        changes.commit().await?;
        tracing::warn!(
            profile = profile.name,
            runtime = profile.runtime,
            driven = self.config().gateway.runtime.name(),
            "a profile was disabled: this server's gateway drives another runtime"
        );
        Ok(())
    }
}
