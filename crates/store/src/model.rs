//! Models: the endpoints that chat may ask. A model's key is among the secrets, and is not read
//! here.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::ModelId;
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, unique};
use crate::error::StoreError;

/// What a system admin enters of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSettings {
    /// What people call it.
    pub name: String,
    /// Where its endpoint is.
    pub base_url: String,
    /// What the endpoint calls it.
    pub model: String,
    /// How many tokens question and answer may have together.
    pub context_tokens: u32,
    /// How long it may take to connect, in seconds.
    pub connect_timeout_seconds: u32,
    /// How long nothing may come before an answer is given up, in seconds.
    pub silence_timeout_seconds: u32,
    /// How long a whole reply may take, code and all, in seconds.
    pub reply_timeout_seconds: u32,
}

/// A model that chat may ask.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its id.
    pub id: ModelId,
    /// What was entered.
    pub settings: ModelSettings,
    /// Whether it is the one that chat asks.
    pub is_default: bool,
    /// Whether there is a key for it.
    pub has_api_key: bool,
    /// Counts up with each change.
    pub version: i64,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

impl Model {
    /// The name of the secret that is the key of the model with this id.
    #[must_use]
    pub fn secret_name(id: ModelId) -> String {
        format!("model/{id}/api_key")
    }
}

const SELECT: &str = "SELECT id, name, base_url, model, context_tokens, \
     connect_timeout_seconds, silence_timeout_seconds, reply_timeout_seconds, is_default, version, \
     created_at, \
     (SELECT COUNT(*) FROM secrets WHERE secrets.name = 'model/' || models.id || '/api_key') \
     AS has_api_key FROM models";

fn read(row: &AnyRow) -> Result<Model, StoreError> {
    let small = |column: &'static str| {
        let found = row.number(column)?;
        u32::try_from(found).map_err(|_| StoreError::Row {
            column,
            found: found.to_string(),
        })
    };
    Ok(Model {
        id: row.word("id")?,
        settings: ModelSettings {
            name: row.text("name")?,
            base_url: row.text("base_url")?,
            model: row.text("model")?,
            context_tokens: small("context_tokens")?,
            connect_timeout_seconds: small("connect_timeout_seconds")?,
            silence_timeout_seconds: small("silence_timeout_seconds")?,
            reply_timeout_seconds: small("reply_timeout_seconds")?,
        },
        is_default: row.flag("is_default")?,
        has_api_key: row.flag("has_api_key")?,
        version: row.number("version")?,
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// The model with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn model(&self, id: ModelId) -> Result<Option<Model>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!("{SELECT} WHERE id = $1")))
            .bind(id.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("reading a model"))?;
        row.as_ref().map(read).transpose()
    }

    /// All models, by age.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn models(&self) -> Result<Vec<Model>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!("{SELECT} ORDER BY id")))
            .fetch_all(&self.pool)
            .await
            .map_err(statement("listing models"))?;
        rows.iter().map(read).collect()
    }

    /// The model that chat asks; nothing where there is none.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn default_model(&self) -> Result<Option<Model>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "{SELECT} WHERE is_default = 1 ORDER BY id LIMIT 1"
        )))
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading the default model"))?;
        row.as_ref().map(read).transpose()
    }
}

impl Transaction {
    /// Makes a model. The first one is the default.
    ///
    /// # Errors
    /// When the name is taken.
    pub async fn create_model(&mut self, settings: &ModelSettings) -> Result<ModelId, StoreError> {
        let id = ModelId::new();
        sqlx::query(
            "INSERT INTO models (id, name, base_url, model, context_tokens, \
             connect_timeout_seconds, silence_timeout_seconds, reply_timeout_seconds, is_default, \
             created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, \
             (SELECT CASE WHEN COUNT(*) = 0 THEN 1 ELSE 0 END FROM models), $9)",
        )
        .bind(id.to_string())
        .bind(&settings.name)
        .bind(&settings.base_url)
        .bind(&settings.model)
        .bind(i64::from(settings.context_tokens))
        .bind(i64::from(settings.connect_timeout_seconds))
        .bind(i64::from(settings.silence_timeout_seconds))
        .bind(i64::from(settings.reply_timeout_seconds))
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(unique("making a model", "that name of a model"))?;
        Ok(id)
    }

    /// Writes a model back that was read at `model.version`. Whether it is the default is not
    /// written: see [`Transaction::make_default_model`].
    ///
    /// # Errors
    /// When somebody else changed it since, or the name is taken.
    pub async fn update_model(&mut self, model: &Model) -> Result<(), StoreError> {
        let settings = &model.settings;
        let done = sqlx::query(
            "UPDATE models SET name = $2, base_url = $3, model = $4, context_tokens = $5, \
             connect_timeout_seconds = $6, silence_timeout_seconds = $7, \
             reply_timeout_seconds = $8, version = version + 1 WHERE id = $1 AND version = $9",
        )
        .bind(model.id.to_string())
        .bind(&settings.name)
        .bind(&settings.base_url)
        .bind(&settings.model)
        .bind(i64::from(settings.context_tokens))
        .bind(i64::from(settings.connect_timeout_seconds))
        .bind(i64::from(settings.silence_timeout_seconds))
        .bind(i64::from(settings.reply_timeout_seconds))
        .bind(model.version)
        .execute(&mut *self.inner)
        .await
        .map_err(unique("changing a model", "that name of a model"))?;
        if done.rows_affected() == 0 {
            return Err(StoreError::Conflict { what: "the model" });
        }
        Ok(())
    }

    /// Makes a model the one that chat asks, in place of the one that was.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn make_default_model(&mut self, id: ModelId) -> Result<(), StoreError> {
        sqlx::query("UPDATE models SET is_default = CASE WHEN id = $1 THEN 1 ELSE 0 END")
            .bind(id.to_string())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("changing the default model"))?;
        Ok(())
    }

    /// Deletes a model and its key. Says whether it was there, and was not the default of several.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn delete_model(&mut self, id: ModelId) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "DELETE FROM models WHERE id = $1 \
             AND (is_default = 0 OR (SELECT COUNT(*) FROM models) = 1)",
        )
        .bind(id.to_string())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("deleting a model"))?;
        if done.rows_affected() == 0 {
            return Ok(false);
        }
        self.forget_secret(&Model::secret_name(id)).await?;
        Ok(true)
    }
}
