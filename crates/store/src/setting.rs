//! Settings of the whole installation, each a document under its name.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_json};
use crate::error::StoreError;

const READ: &str = "SELECT value FROM settings WHERE name = $1";

impl Store {
    /// The setting of this name, if it was ever set.
    ///
    /// # Errors
    /// When the database does not answer, or holds something else under the name.
    pub async fn setting<T: DeserializeOwned>(
        &self,
        name: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let row = sqlx::query(READ)
            .bind(name)
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("reading a setting"))?;
        row.map(|row| row.document("value")).transpose()
    }
}

impl Transaction {
    /// The setting of this name, which nobody else changes until these changes are done.
    ///
    /// # Errors
    /// As for [`Store::setting`].
    pub async fn setting<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, StoreError> {
        let select = "SELECT 1 FROM settings WHERE name = $1 FOR NO KEY UPDATE";
        self.hold(select, name, "holding a setting").await?;
        let row = sqlx::query(READ)
            .bind(name)
            .fetch_optional(&mut *self.inner)
            .await
            .map_err(statement("reading a setting"))?;
        row.map(|row| row.document("value")).transpose()
    }

    /// Sets it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn set<T: Serialize + Sync>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO settings (name, value, changed_at) VALUES ($1, $2, $3) \
             ON CONFLICT (name) DO UPDATE SET value = excluded.value, \
             changed_at = excluded.changed_at",
        )
        .bind(name)
        .bind(to_json("value", value)?)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("changing a setting"))?;
        Ok(())
    }

    /// Sets it where it was never set, and gives what is set then. Whoever does the same meanwhile
    /// waits for these changes, and gets the same.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn set_once<T: Serialize + DeserializeOwned + Sync>(
        &mut self,
        name: &'static str,
        value: T,
    ) -> Result<T, StoreError> {
        sqlx::query(
            "INSERT INTO settings (name, value, changed_at) VALUES ($1, $2, $3) \
             ON CONFLICT (name) DO NOTHING",
        )
        .bind(name)
        .bind(to_json("value", &value)?)
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(statement("setting what was never set"))?;
        Ok(self.setting(name).await?.unwrap_or(value))
    }
}
