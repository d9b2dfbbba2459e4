//! Sandboxes that are made before anybody asks for them: as many as the settings of a profile say, for
//! each workspace that may run code on it.

use glovebox_protocol::gateway::{KeepReady, KeptKind};
use glovebox_store::{ProfileState, StoreError, Workspace};

use crate::app::App;
use crate::app::gate::{DEPLOYMENT, Deployment, may_run_at_all, resolve};
use crate::app::sandboxes::{SandboxError, limits, trust_domain};

/// How many workspaces are read at once.
const PAGE: u32 = 200;

/// Tells the gateway what is to be kept ready. It is told again and again: a gateway that was started
/// anew has forgotten.
pub(super) async fn keep(app: &App) -> Result<(), SandboxError> {
    let wanted = wanted(app).await?;
    app.gateway().keep_ready(&wanted).await?;
    Ok(())
}

async fn wanted(app: &App) -> Result<KeepReady, StoreError> {
    let mut wanted = KeepReady::default();
    let store = app.store();
    let deployment: Deployment = store.setting(DEPLOYMENT).await?.unwrap_or_default();
    if may_run_at_all(store, app.break_glass(), &deployment)
        .await?
        .is_err()
    {
        return Ok(wanted);
    }
    let mut after = None;
    loop {
        let page = store.workspaces(after, PAGE).await?;
        let Some(last) = page.last() else {
            return Ok(wanted);
        };
        after = Some(last.id);
        for workspace in page.iter().filter(|workspace| workspace.code_execution) {
            add(app, &deployment, workspace, &mut wanted).await?;
        }
    }
}

async fn add(
    app: &App,
    deployment: &Deployment,
    workspace: &Workspace,
    wanted: &mut KeepReady,
) -> Result<(), StoreError> {
    let Some((profile, _)) = resolve(app.store(), deployment, workspace).await? else {
        return Ok(());
    };
    let settings = &profile.settings;
    let is_allowed = settings.class <= workspace.quotas.max_resource_class;
    if profile.state != ProfileState::Active || settings.warm_pool == 0 || !is_allowed {
        return Ok(());
    }
    let kind = KeptKind {
        trust_domain: trust_domain(workspace),
        limits: limits(settings, settings.class),
        start: settings.start,
        count: settings.warm_pool,
    };
    // Workspaces of one organization share them.
    if !wanted.kinds.contains(&kind) {
        wanted.kinds.push(kind);
    }
    Ok(())
}
