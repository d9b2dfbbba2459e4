//! Admin → System → Models: the endpoints that chat may ask. Keys go in and never come out.

use axum::Json;
use axum::extract::{Path, State};
use chrono::{DateTime, Utc};
use glovebox_protocol::gateway::CheckStatus;
use glovebox_protocol::ids::ModelId;
use glovebox_store::{Model, ModelSettings};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use zeroize::Zeroizing;

use super::answers::{Errors, Page};
use super::body::{JsonObject, given};
use super::caller::SystemAdmin;
use super::error::ApiError;
use crate::app::App;
use crate::app::model_test::{ModelTest, TestStep};
use crate::app::models::{ChangedModel, ModelAdminError, ModelChanges};

fn model_id(text: &str) -> Result<ModelId, ApiError> {
    text.parse().map_err(|_| ApiError::not_found("model"))
}

/// A model that chat may ask.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelView {
    id: String,
    /// What people call it.
    name: String,
    /// Where its endpoint is, without `/chat/completions`.
    base_url: String,
    /// What the endpoint calls it.
    model: String,
    /// How many tokens question and answer may have together.
    context_tokens: u32,
    connect_timeout_seconds: u32,
    /// How long nothing may come before an answer is given up.
    silence_timeout_seconds: u32,
    /// How long a whole reply may take, code and all.
    reply_timeout_seconds: u32,
    /// Whether it is the one that chat asks.
    is_default: bool,
    /// Whether there is a key; it is never shown.
    has_api_key: bool,
    version: i64,
    created_at: DateTime<Utc>,
}

impl From<Model> for ModelView {
    fn from(model: Model) -> Self {
        Self {
            id: model.id.to_string(),
            name: model.settings.name,
            base_url: model.settings.base_url,
            model: model.settings.model,
            context_tokens: model.settings.context_tokens,
            connect_timeout_seconds: model.settings.connect_timeout_seconds,
            silence_timeout_seconds: model.settings.silence_timeout_seconds,
            reply_timeout_seconds: model.settings.reply_timeout_seconds,
            is_default: model.is_default,
            has_api_key: model.has_api_key,
            version: model.version,
            created_at: model.created_at,
        }
    }
}

/// A model after a change.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedModelView {
    #[serde(flatten)]
    model: ModelView,
    /// What else has changed with it: that a key was dropped, as the endpoint is at another place.
    notice: Option<String>,
}

impl From<ChangedModel> for ChangedModelView {
    fn from(changed: ChangedModel) -> Self {
        let notice = "the API key was dropped, as it was entered for another host; enter the key \
                      of this one";
        Self {
            notice: changed.is_key_dropped.then(|| notice.to_owned()),
            model: changed.model.into(),
        }
    }
}

/// Lists the models.
#[utoipa::path(get, path = "/api/v1/admin/models", tag = "models",
    security(("session" = [])), responses((status = 200, body = Page<ModelView>), Errors))]
pub(crate) async fn list(
    State(app): State<App>,
    _: SystemAdmin,
) -> Result<Json<Page<ModelView>>, ApiError> {
    let models = app.store().models().await?;
    Ok(Json(Page {
        items: models.into_iter().map(ModelView::from).collect(),
        next_cursor: None,
    }))
}

/// A model to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateModel {
    name: String,
    base_url: String,
    model: String,
    /// 32768 where nobody says.
    #[serde(default)]
    context_tokens: Option<u32>,
    /// 10 where nobody says.
    #[serde(default)]
    connect_timeout_seconds: Option<u32>,
    /// 120 where nobody says.
    #[serde(default)]
    silence_timeout_seconds: Option<u32>,
    /// 1800 where nobody says.
    #[serde(default)]
    reply_timeout_seconds: Option<u32>,
    /// Whether it is the one that chat asks from now on; the first one is anyway.
    #[serde(default)]
    is_default: bool,
    /// What proves to the endpoint who asks.
    #[serde(default)]
    #[schema(value_type = Option<String>, write_only)]
    api_key: Option<Zeroizing<String>>,
}

/// Makes a model.
#[utoipa::path(post, path = "/api/v1/admin/models", tag = "models", request_body = CreateModel,
    security(("session" = [])), responses((status = 201, body = ModelView), Errors))]
pub(crate) async fn create(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Json(JsonObject(body)): Json<JsonObject<CreateModel>>,
) -> Result<(StatusCode, Json<ModelView>), ApiError> {
    let settings = ModelSettings {
        name: body.name,
        base_url: body.base_url,
        model: body.model,
        context_tokens: body.context_tokens.unwrap_or(32_768),
        connect_timeout_seconds: body.connect_timeout_seconds.unwrap_or(10),
        silence_timeout_seconds: body.silence_timeout_seconds.unwrap_or(120),
        reply_timeout_seconds: body.reply_timeout_seconds.unwrap_or(1_800),
    };
    let made = app
        .create_model(&admin.actor, settings, body.is_default, body.api_key)
        .await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// What is to be changed of a model.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeModel {
    /// The version that was read.
    version: i64,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    base_url: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    context_tokens: Option<u32>,
    #[serde(default)]
    connect_timeout_seconds: Option<u32>,
    #[serde(default)]
    silence_timeout_seconds: Option<u32>,
    #[serde(default)]
    reply_timeout_seconds: Option<u32>,
    /// `true` makes it the one that chat asks.
    #[serde(default)]
    is_default: Option<bool>,
    /// Another key; null takes it away. Where the base URL leads to another host and no key comes
    /// with it, the key is taken away too.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, write_only)]
    api_key: Option<Option<Zeroizing<String>>>,
}

/// Changes a model. Replies that are under way go on as they began.
#[utoipa::path(patch, path = "/api/v1/admin/models/{model}", tag = "models",
    params(("model" = String, Path, description = "Its id")), request_body = ChangeModel,
    security(("session" = [])), responses((status = 200, body = ChangedModelView), Errors))]
pub(crate) async fn change(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(model): Path<String>,
    Json(JsonObject(body)): Json<JsonObject<ChangeModel>>,
) -> Result<Json<ChangedModelView>, ApiError> {
    let changes = ModelChanges {
        name: body.name,
        base_url: body.base_url,
        model: body.model,
        context_tokens: body.context_tokens,
        connect_timeout_seconds: body.connect_timeout_seconds,
        silence_timeout_seconds: body.silence_timeout_seconds,
        reply_timeout_seconds: body.reply_timeout_seconds,
        is_default: body.is_default == Some(true),
        api_key: body.api_key,
    };
    let changed = app
        .change_model(&admin.actor, model_id(&model)?, body.version, changes)
        .await?;
    Ok(Json(changed.into()))
}

/// Deletes a model and its key. The default can be deleted when it is the last one.
#[utoipa::path(delete, path = "/api/v1/admin/models/{model}", tag = "models",
    params(("model" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 204), Errors))]
pub(crate) async fn delete(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(model): Path<String>,
) -> Result<StatusCode, ApiError> {
    app.delete_model(&admin.actor, model_id(&model)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a test of a model has found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelTestView {
    /// Whether chat can work with it.
    is_passed: bool,
    /// In order; a step that failed is the last one.
    steps: Vec<ModelTestStepView>,
    /// The models that the endpoint has; nothing where it does not list them.
    models: Option<Vec<String>>,
    /// Milliseconds until the first word of an answer.
    latency_ms: Option<u64>,
}

/// One step of a test.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelTestStepView {
    /// `address`, `connection`, `key`, `model`, `stream` or `tool_call`.
    id: String,
    title: String,
    /// `pass`, `warn` or `fail`.
    status: String,
    message: String,
    fix: Option<String>,
}

impl From<ModelTest> for ModelTestView {
    fn from(test: ModelTest) -> Self {
        let step = |step: TestStep| ModelTestStepView {
            id: step.id.into(),
            title: step.title.into(),
            status: match step.status {
                CheckStatus::Pass => "pass".into(),
                CheckStatus::Warn => "warn".into(),
                CheckStatus::Fail => "fail".into(),
            },
            message: step.message,
            fix: step.fix,
        };
        Self {
            is_passed: test.is_passed(),
            steps: test.steps.into_iter().map(step).collect(),
            models: test.models,
            latency_ms: test.latency_ms,
        }
    }
}

/// Asks a model as chat would, step by step. That something does not work is a result.
#[utoipa::path(post, path = "/api/v1/admin/models/{model}/test", tag = "models",
    params(("model" = String, Path, description = "Its id")),
    security(("session" = [])), responses((status = 200, body = ModelTestView), Errors))]
pub(crate) async fn test(
    State(app): State<App>,
    SystemAdmin(admin): SystemAdmin,
    Path(model): Path<String>,
) -> Result<Json<ModelTestView>, ApiError> {
    let test = app.test_model(&admin.actor, model_id(&model)?).await?;
    Ok(Json(test.into()))
}

impl From<ModelAdminError> for ApiError {
    fn from(error: ModelAdminError) -> Self {
        let message = error.to_string();
        match error {
            ModelAdminError::NotFound => Self::not_found("model"),
            ModelAdminError::BaseUrl(_) => Self::invalid(
                message,
                "enter the address of the endpoint, such as https://api.example.com/v1",
            ),
            ModelAdminError::Setting { .. } => Self::invalid(message, "choose another value"),
            ModelAdminError::IsDefault => Self::conflict(
                "is_default_model",
                message,
                "make another model the default first",
            ),
            ModelAdminError::Store(error) => error.into(),
        }
    }
}
