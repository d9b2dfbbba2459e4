//! What is set for the whole installation: whether code may run at all, and on which profile.

use glovebox_protocol::ids::ProfileId;
use glovebox_store::{Actor, Entry, ProfileState, StoreError};

use super::App;
use super::gate::{self, DEPLOYMENT, Denial, Deployment};
use super::profiles::ProfileError;

impl App {
    /// What is set, and why no code runs with it; nothing where it can.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn deployment(&self) -> Result<(Deployment, Option<Denial>), StoreError> {
        let deployment: Deployment = self.store().setting(DEPLOYMENT).await?.unwrap_or_default();
        let may_run = gate::may_run_at_all(self.store(), self.break_glass(), &deployment).await?;
        Ok((deployment, may_run.err()))
    }

    /// Changes what is set for the whole installation. Switching code execution off stays possible
    /// where the server's environment has locked the rest: nobody has to start a server anew to stop
    /// what runs.
    ///
    /// # Errors
    /// When it is locked, the default profile is none that there is, or a switch cannot be turned on.
    pub async fn change_deployment(
        &self,
        actor: &Actor,
        code_execution: Option<bool>,
        default_profile: Option<ProfileId>,
    ) -> Result<(), ProfileError> {
        if code_execution != Some(false) || default_profile.is_some() {
            self.unlocked()?;
        }
        let mut changes = self.store().begin().await?;
        let wanted = match default_profile {
            Some(id) => changes.hold_profile(id).await?,
            None => None,
        };
        let mut deployment: Deployment = changes.setting(DEPLOYMENT).await?.unwrap_or_default();
        let mut fields = Vec::new();
        if let Some(id) = default_profile.filter(|id| deployment.default_profile != Some(*id)) {
            let profile = wanted.ok_or(ProfileError::NotFound)?;
            if profile.state != ProfileState::Active {
                return Err(ProfileError::NotActive(profile.name));
            }
            deployment.default_profile = Some(id);
            fields.push("default_profile");
        }
        if let Some(on) = code_execution.filter(|on| deployment.code_execution != *on) {
            if on && deployment.default_profile.is_none() {
                return Err(ProfileError::NoDefault);
            }
            deployment.code_execution = on;
            fields.push("code_execution");
        }
        if !fields.is_empty() {
            changes.set(DEPLOYMENT, &deployment).await?;
            let entry = Entry {
                action: "deployment.update",
                object_kind: "deployment",
                object_id: None,
                object: "deployment",
                workspace: None,
                fields: &fields,
            };
            changes.record(actor, entry).await?;
            changes.commit().await?;
        }
        Ok(())
    }
}
