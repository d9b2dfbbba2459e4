//! Models: which endpoints chat may ask, and with which key.

use std::time::Duration;

use glovebox_protocol::ids::ModelId;
use glovebox_store::{Actor, Entry, Model, ModelSettings, StoreError};
use zeroize::Zeroizing;

use super::App;
use crate::chat::model::{BaseUrl, InvalidBaseUrl, ModelEndpoint};

/// Why a model was not made, changed or deleted.
#[derive(Debug, thiserror::Error)]
pub enum ModelAdminError {
    /// There is none.
    #[error("there is no such model")]
    NotFound,
    /// Its address is none that may be asked.
    #[error("the base URL is refused: {0}")]
    BaseUrl(#[from] InvalidBaseUrl),
    /// A value is out of its bounds.
    #[error("{setting} {why}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What is wrong.
        why: &'static str,
    },
    /// It is the default, and there are others.
    #[error("the default model cannot be deleted while there are others")]
    IsDefault,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is to be changed of a model; what is `None` stays.
#[derive(Debug, Default)]
pub struct ModelChanges {
    /// What people call it.
    pub name: Option<String>,
    /// Where its endpoint is.
    pub base_url: Option<String>,
    /// What the endpoint calls it.
    pub model: Option<String>,
    /// How many tokens question and answer may have together.
    pub context_tokens: Option<u32>,
    /// How long it may take to connect, in seconds.
    pub connect_timeout_seconds: Option<u32>,
    /// How long nothing may come before an answer is given up, in seconds.
    pub silence_timeout_seconds: Option<u32>,
    /// How long a whole reply may take, code and all, in seconds.
    pub reply_timeout_seconds: Option<u32>,
    /// Whether it is the one that chat asks from now on.
    pub is_default: bool,
    /// The key; `Some(None)` takes it away.
    pub api_key: Option<Option<Zeroizing<String>>>,
}

/// A model after a change.
#[derive(Debug, Clone)]
pub struct ChangedModel {
    /// The model.
    pub model: Model,
    /// Whether its key was taken away because its endpoint is at another place now.
    pub is_key_dropped: bool,
}

impl App {
    /// Makes a model. The first one is the default.
    ///
    /// # Errors
    /// When what is given cannot be used, or the name is taken.
    pub async fn create_model(
        &self,
        actor: &Actor,
        settings: ModelSettings,
        is_default: bool,
        api_key: Option<Zeroizing<String>>,
    ) -> Result<Model, ModelAdminError> {
        let (settings, _) = checked(settings)?;
        let api_key = api_key.map(checked_key).transpose()?;
        let mut changes = self.store().begin().await?;
        let id = changes.create_model(&settings).await?;
        let mut fields = vec!["name", "base_url", "model", "context_tokens"];
        fields.extend(["connect_timeout_seconds", "silence_timeout_seconds"]);
        fields.push("reply_timeout_seconds");
        if let Some(key) = &api_key {
            let name = Model::secret_name(id);
            changes
                .put_secret(self.master(), &name, key.as_bytes())
                .await?;
            fields.push("api_key");
        }
        if is_default {
            changes.make_default_model(id).await?;
            fields.push("is_default");
        }
        let entry = entry("model.create", id, &settings.name, &fields);
        changes.record(actor, entry).await?;
        changes.commit().await?;
        let made = self.store().model(id).await?;
        made.ok_or(ModelAdminError::NotFound)
    }

    /// Changes a model that was read at `version`. A key stays with the place that it was entered
    /// for: where the endpoint is at another one and no key comes with the change, it is dropped.
    ///
    /// # Errors
    /// When a value cannot be used, or somebody else changed it since.
    pub async fn change_model(
        &self,
        actor: &Actor,
        id: ModelId,
        version: i64,
        wanted: ModelChanges,
    ) -> Result<ChangedModel, ModelAdminError> {
        let found = self.store().model(id).await?;
        let mut model = found.ok_or(ModelAdminError::NotFound)?;
        model.version = version;
        let before = model.settings.clone();
        let (settings, base_url) = checked(wanted.over(before.clone()))?;
        let mut fields = changed(&before, &settings);
        // An address that this program would not take any more is none that keeps its key.
        let is_moved = BaseUrl::parse(&before.base_url)
            .map_or(true, |before| !before.is_same_place(&base_url));
        let is_key_dropped = is_moved && model.has_api_key && wanted.api_key.is_none();
        let secret = Model::secret_name(id);
        model.settings = settings;
        let mut changes = self.store().begin().await?;
        changes.update_model(&model).await?;
        match wanted.api_key {
            Some(Some(key)) => {
                let key = checked_key(key)?;
                changes
                    .put_secret(self.master(), &secret, key.as_bytes())
                    .await?;
                fields.push("api_key");
            }
            Some(None) => {
                changes.forget_secret(&secret).await?;
                fields.push("api_key");
            }
            None if is_key_dropped => {
                changes.forget_secret(&secret).await?;
                fields.push("api_key");
            }
            None => {}
        }
        if wanted.is_default && !model.is_default {
            changes.make_default_model(id).await?;
            fields.push("is_default");
        }
        let entry = entry("model.update", id, &model.settings.name, &fields);
        changes.record(actor, entry).await?;
        changes.commit().await?;
        let model = self.store().model(id).await?;
        Ok(ChangedModel {
            model: model.ok_or(ModelAdminError::NotFound)?,
            is_key_dropped,
        })
    }

    /// Deletes a model and its key.
    ///
    /// # Errors
    /// When there is none, or it is the default of several.
    pub async fn delete_model(&self, actor: &Actor, id: ModelId) -> Result<(), ModelAdminError> {
        let found = self.store().model(id).await?;
        let model = found.ok_or(ModelAdminError::NotFound)?;
        let mut changes = self.store().begin().await?;
        if !changes.delete_model(id).await? {
            return Err(ModelAdminError::IsDefault);
        }
        let entry = entry("model.delete", id, &model.settings.name, &[]);
        changes.record(actor, entry).await?;
        changes.commit().await?;
        Ok(())
    }

    /// The endpoint that chat asks, with its key; nothing where no model is set.
    ///
    /// # Errors
    /// When the database does not answer, or the key cannot be opened.
    pub async fn chat_model(&self) -> Result<Option<ModelEndpoint>, ModelAdminError> {
        match self.store().default_model().await? {
            None => Ok(None),
            Some(model) => self.endpoint(&model).await.map(Some),
        }
    }

    /// A model's endpoint, with its key.
    pub(super) async fn endpoint(&self, model: &Model) -> Result<ModelEndpoint, ModelAdminError> {
        let settings = &model.settings;
        let name = Model::secret_name(model.id);
        let key = self.store().secret(self.master(), &name).await?;
        // What was put there was text.
        let key = key.and_then(|key| String::from_utf8(key.to_vec()).ok());
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        Ok(ModelEndpoint {
            client: self.models().clone(),
            base_url: BaseUrl::parse(&settings.base_url)?,
            model: settings.model.clone(),
            context_tokens: settings.context_tokens,
            connect_timeout: seconds(settings.connect_timeout_seconds),
            silence_timeout: seconds(settings.silence_timeout_seconds),
            reply_timeout: seconds(settings.reply_timeout_seconds),
            api_key: key.map(Zeroizing::new),
        })
    }
}

impl ModelChanges {
    fn over(&self, before: ModelSettings) -> ModelSettings {
        let seconds = (self.connect_timeout_seconds, self.silence_timeout_seconds);
        ModelSettings {
            name: self.name.clone().unwrap_or(before.name),
            base_url: self.base_url.clone().unwrap_or(before.base_url),
            model: self.model.clone().unwrap_or(before.model),
            context_tokens: self.context_tokens.unwrap_or(before.context_tokens),
            connect_timeout_seconds: seconds.0.unwrap_or(before.connect_timeout_seconds),
            silence_timeout_seconds: seconds.1.unwrap_or(before.silence_timeout_seconds),
            reply_timeout_seconds: self
                .reply_timeout_seconds
                .unwrap_or(before.reply_timeout_seconds),
        }
    }
}

/// What has changed, by the names of the fields.
fn changed(before: &ModelSettings, after: &ModelSettings) -> Vec<&'static str> {
    [
        ("name", before.name != after.name),
        ("base_url", before.base_url != after.base_url),
        ("model", before.model != after.model),
        (
            "context_tokens",
            before.context_tokens != after.context_tokens,
        ),
        (
            "connect_timeout_seconds",
            before.connect_timeout_seconds != after.connect_timeout_seconds,
        ),
        (
            "silence_timeout_seconds",
            before.silence_timeout_seconds != after.silence_timeout_seconds,
        ),
        (
            "reply_timeout_seconds",
            before.reply_timeout_seconds != after.reply_timeout_seconds,
        ),
    ]
    .into_iter()
    .filter_map(|(name, is_changed)| is_changed.then_some(name))
    .collect()
}

pub(super) fn entry<'a>(
    action: &'a str,
    id: ModelId,
    name: &'a str,
    fields: &'a [&'a str],
) -> Entry<'a> {
    Entry {
        action,
        object_kind: "model",
        object_id: Some(id.to_string()),
        object: name,
        workspace: None,
        fields,
    }
}

/// What may be stored, in its one form.
fn checked(mut settings: ModelSettings) -> Result<(ModelSettings, BaseUrl), ModelAdminError> {
    let base_url = BaseUrl::parse(&settings.base_url)?;
    base_url.as_str().clone_into(&mut settings.base_url);
    settings.name = settings.name.trim().to_owned();
    settings.model = settings.model.trim().to_owned();
    let is_word = |text: &str, most: usize| {
        (1..=most).contains(&text.chars().count()) && !text.chars().any(char::is_control)
    };
    let rules: [(&'static str, bool, &'static str); 7] = [
        (
            "name",
            is_word(&settings.name, 80),
            "has 1 to 80 characters in one line",
        ),
        (
            "model",
            is_word(&settings.model, 200),
            "has 1 to 200 characters in one line",
        ),
        (
            "base_url",
            settings.base_url.len() <= 2_000,
            "has at most 2000 characters",
        ),
        (
            "context_tokens",
            (2_048..=10_000_000).contains(&settings.context_tokens),
            "is from 2048 to 10000000",
        ),
        (
            "connect_timeout_seconds",
            (1..=120).contains(&settings.connect_timeout_seconds),
            "is from 1 to 120",
        ),
        (
            "silence_timeout_seconds",
            (1..=600).contains(&settings.silence_timeout_seconds),
            "is from 1 to 600",
        ),
        (
            "reply_timeout_seconds",
            (1..=86_400).contains(&settings.reply_timeout_seconds),
            "is from 1 to 86400",
        ),
    ];
    match rules.into_iter().find(|(_, is_good, _)| !is_good) {
        Some((setting, _, why)) => Err(ModelAdminError::Setting { setting, why }),
        None => Ok((settings, base_url)),
    }
}

/// A key as it can be sent. Nothing of it stands in the error.
fn checked_key(key: Zeroizing<String>) -> Result<Zeroizing<String>, ModelAdminError> {
    let trimmed = key.trim();
    if (1..=4_096).contains(&trimmed.len()) && trimmed.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(Zeroizing::new(trimmed.to_owned()))
    } else {
        Err(ModelAdminError::Setting {
            setting: "api_key",
            why: "has 1 to 4096 visible characters and no space",
        })
    }
}
