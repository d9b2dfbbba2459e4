//! Admin → System → Sandbox: the switch, the default profile, profiles and their proofs.

use axum::Json;
use axum::extract::{Path, State};
use glovebox_protocol::ids::ProfileId;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::answers::{Errors, Page};
use super::body::JsonObject;
use super::caller::SystemAdmin;
use super::error::ApiError;
use super::profile_settings::ChangeProfileSettings;
use super::views::{DeniedView, ProfileDetailView};
use crate::app::App;
use crate::app::profiles::ProfileError;

/// What is set for the whole installation.
#[derive(Serialize, ToSchema)]
pub(crate) struct DeploymentView {
    /// Whether code may run at all.
    code_execution: bool,
    default_profile_id: Option<String>,
    /// Whether the server's environment forces code execution off.
    is_forced_off: bool,
    /// Whether the server's environment has locked profiles.
    is_locked: bool,
    /// Why no code runs now; nothing where it can.
    denial: Option<DeniedView>,
}

async fn view(app: &App) -> Result<Json<DeploymentView>, ApiError> {
    let (deployment, denial) = app.deployment().await?;
    Ok(Json(DeploymentView {
        code_execution: deployment.code_execution,
        default_profile_id: deployment.default_profile.map(|id| id.to_string()),
        is_forced_off: !app.config().sandbox_enabled,
        is_locked: !app.config().sandbox_gui_config,
        denial: denial.map(|denial| DeniedView {
            name: denial.name.into(),
            message: denial.message,
            fix: denial.fix,
        }),
    }))
}

fn profile_id(text: &str) -> Result<ProfileId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("profile"))
}

/// Says what is set for the whole installation.
#[utoipa::path(get, path = "/api/v1/admin/sandbox", tag = "profiles",
    security(("session" = [])), responses((status = 200, body = DeploymentView), Errors))]
pub(crate) async fn deployment(
    State(app): State<App>,
    _: SystemAdmin,
) -> Result<Json<DeploymentView>, ApiError> {
    view(&app).await
}

/// What is to be changed for the whole installation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeDeployment {
    #[serde(default)]
    code_execution: Option<bool>,
    /// An active profile.
    #[serde(default)]
    default_profile_id: Option<String>,
}

/// Switches code execution on or off, and chooses the default profile. Off can be said also where the
/// server's environment has locked the rest.
#[utoipa::path(patch, path = "/api/v1/admin/sandbox", tag = "profiles",
    request_body = ChangeDeployment,
    security(("session" = [])), responses((status = 200, body = DeploymentView), Errors))]
pub(crate) async fn change_deployment(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Json(JsonObject(body)): Json<JsonObject<ChangeDeployment>>,
) -> Result<Json<DeploymentView>, ApiError> {
    let default = body
        .default_profile_id
        .as_deref()
        .map(profile_id)
        .transpose()?;
    app.change_deployment(&admin.actor, body.code_execution, default)
        .await?;
    view(&app).await
}

/// Lists all profiles with their proofs.
#[utoipa::path(get, path = "/api/v1/admin/profiles", tag = "profiles",
    security(("session" = [])), responses((status = 200, body = Page<ProfileDetailView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    _: SystemAdmin,
) -> Result<Json<Page<ProfileDetailView>>, ApiError> {
    let details = app.profile_details().await?;
    Ok(Json(Page {
        items: details.into_iter().map(ProfileDetailView::from).collect(),
        next_cursor: None,
    }))
}

/// Shows a profile with its proofs.
#[utoipa::path(get, path = "/api/v1/admin/profiles/{profile}", tag = "profiles",
    params(("profile" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn show(
    State(app): State<App>,
    _: SystemAdmin,
    Path(profile): Path<String>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let detail = app.profile_detail(profile_id(&profile)?).await?;
    Ok(Json(detail.into()))
}

/// What is to be changed of a profile. What is left out stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeProfile {
    /// The version that was read.
    version: i64,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<ChangeProfileSettings>)]
    settings: Option<JsonObject<ChangeProfileSettings>>,
}

/// Changes a profile's name and settings. Sandboxes that run keep theirs.
#[utoipa::path(patch, path = "/api/v1/admin/profiles/{profile}", tag = "profiles",
    params(("profile" = String, Path, description = "Its id")), request_body = ChangeProfile,
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn change(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(profile): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<ChangeProfile>>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let id = profile_id(&profile)?;
    let JsonObject(settings) = body.settings.unwrap_or_default();
    let detail = app
        .change_profile(&admin.actor, id, body.version, body.name, |present| {
            settings.apply(present);
        })
        .await?;
    Ok(Json(detail.into()))
}

/// Looks at the profile's runtime. That something is not as it has to be is a result.
#[utoipa::path(post, path = "/api/v1/admin/profiles/{profile}/test", tag = "profiles",
    params(("profile" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn test(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(profile): Path<String>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let detail = app
        .test_profile(&admin.actor, profile_id(&profile)?)
        .await?;
    Ok(Json(detail.into()))
}

/// Lets a throwaway sandbox try what none may reach. That something was reached is a result.
#[utoipa::path(post, path = "/api/v1/admin/profiles/{profile}/canary", tag = "profiles",
    params(("profile" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn canary(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(profile): Path<String>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let detail = app.run_canary(&admin.actor, profile_id(&profile)?).await?;
    Ok(Json(detail.into()))
}

/// Keeps that the person that is signed in has read what the profile does not promise.
#[utoipa::path(put, path = "/api/v1/admin/profiles/{profile}/acknowledgements/{name}",
    tag = "profiles",
    params(("profile" = String, Path, description = "Its id"),
        ("name" = String, Path, description = "`shared_kernel`")),
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn acknowledge(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path((profile, name)): Path<(String, String)>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let id = profile_id(&profile)?;
    let detail = app
        .acknowledge(&admin.actor, admin.user.id, id, &name)
        .await?;
    Ok(Json(detail.into()))
}

/// Lets sandboxes be made on a profile.
#[utoipa::path(post, path = "/api/v1/admin/profiles/{profile}/activate", tag = "profiles",
    params(("profile" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn activate(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(profile): Path<String>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let id = profile_id(&profile)?;
    let detail = app.activate_profile(&admin.actor, id).await?;
    Ok(Json(detail.into()))
}

/// Lets no more sandboxes be made on a profile.
#[utoipa::path(post, path = "/api/v1/admin/profiles/{profile}/disable", tag = "profiles",
    params(("profile" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = ProfileDetailView), Errors))]
pub(crate) async fn disable(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(profile): Path<String>,
) -> Result<Json<ProfileDetailView>, ApiError> {
    let id = profile_id(&profile)?;
    let detail = app.disable_profile(&admin.actor, id).await?;
    Ok(Json(detail.into()))
}

impl From<ProfileError> for ApiError {
    fn from(error: ProfileError) -> Self {
        let message = error.to_string();
        match error {
            ProfileError::NotFound => Self::not_found("profile"),
            ProfileError::UnknownAcknowledgement => Self::not_found("acknowledgement"),
            ProfileError::Locked => Self::refused(
                "gui_config_locked",
                message,
                "whoever runs the server unsets SANDBOX_GUI_CONFIG and starts it again; code execution can \
                 be switched off all the same",
            ),
            ProfileError::Blocked(blockers) => Self::conflict(
                "activation_blocked",
                message,
                "do what is listed, then try again",
            )
            .with(json!({ "blockers": blockers })),
            ProfileError::NotActive(_) => {
                Self::conflict("profile_not_active", message, "activate the profile first")
            }
            ProfileError::NoDefault => Self::conflict(
                "no_default_profile",
                message,
                "activate a profile, make it the default, then switch code execution on",
            ),
            ProfileError::IsDefault => Self::conflict(
                "is_default_profile",
                message,
                "make another profile the default first",
            ),
            ProfileError::Setting { .. } => Self::invalid(message, "choose another value"),
            ProfileError::Store(error) => error.into(),
            ProfileError::Runtime(error) => error.into(),
        }
    }
}
