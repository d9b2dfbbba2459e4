//! People who can sign in.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::UserId;
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, unique};
use crate::error::StoreError;

/// A person who can sign in.
#[derive(Debug, Clone)]
pub struct User {
    /// Its id.
    pub id: UserId,
    /// The address that it signs in with, in lowercase.
    pub email: String,
    /// What others see.
    pub name: String,
    /// The Argon2id hash of its password, in PHC form; `None` where it has none.
    pub password_hash: Option<String>,
    /// Whether it looks after the whole installation.
    pub is_system_admin: bool,
    /// Whether it may not sign in.
    pub is_disabled: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// What a new user is made of.
#[derive(Debug, Clone)]
pub struct NewUser {
    /// In lowercase.
    pub email: String,
    /// What others see.
    pub name: String,
    /// In PHC form.
    pub password_hash: Option<String>,
    /// Whether it looks after the whole installation.
    pub is_system_admin: bool,
}

pub(crate) const COLUMNS: &str =
    "id, email, name, password_hash, is_system_admin, is_disabled, created_at";

pub(crate) fn read(row: &AnyRow) -> Result<User, StoreError> {
    Ok(User {
        id: row.word("id")?,
        email: row.text("email")?,
        name: row.text("name")?,
        password_hash: row.maybe_text("password_hash")?,
        is_system_admin: row.flag("is_system_admin")?,
        is_disabled: row.flag("is_disabled")?,
        created_at: row.time("created_at")?,
    })
}

impl Store {
    /// The user with this id.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn user(&self, id: UserId) -> Result<Option<User>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM users WHERE id = $1"
        )))
        .bind(id.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("reading a user"))?;
        row.as_ref().map(read).transpose()
    }

    /// The user who signs in with this address, in lowercase.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn user_by_email(&self, email: &str) -> Result<Option<User>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM users WHERE email = $1"
        )))
        .bind(email)
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for a user"))?;
        row.as_ref().map(read).transpose()
    }

    /// All users after `after`, by age, at most `limit`.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn users(&self, after: Option<UserId>, limit: u32) -> Result<Vec<User>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM users WHERE id > $1 ORDER BY id LIMIT $2"
        )))
        .bind(after.map_or_else(String::new, |id| id.to_string()))
        .bind(i64::from(limit))
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing users"))?;
        rows.iter().map(read).collect()
    }

    /// How many users look after the installation and may sign in.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn count_system_admins(&self) -> Result<i64, StoreError> {
        sqlx::query(ADMINS)
            .fetch_one(&self.pool)
            .await
            .map_err(statement("counting administrators"))?
            .number("n")
    }
}

const ADMINS: &str =
    "SELECT COUNT(*) AS n FROM users WHERE is_system_admin = 1 AND is_disabled = 0";

impl Transaction {
    /// Makes a user.
    ///
    /// # Errors
    /// When the address is taken.
    pub async fn create_user(&mut self, new: &NewUser) -> Result<UserId, StoreError> {
        let id = UserId::new();
        sqlx::query(
            "INSERT INTO users (id, email, name, password_hash, is_system_admin, is_disabled, \
             created_at) VALUES ($1, $2, $3, $4, $5, 0, $6)",
        )
        .bind(id.to_string())
        .bind(&new.email)
        .bind(&new.name)
        .bind(new.password_hash.clone())
        .bind(i64::from(new.is_system_admin))
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(unique("making a user", "that e-mail address"))?;
        Ok(id)
    }

    /// Changes what can be changed of a user; what is `None` stays.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn change_user(
        &mut self,
        id: UserId,
        name: Option<&str>,
        is_system_admin: Option<bool>,
        is_disabled: Option<bool>,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE users SET name = COALESCE($2, name), \
             is_system_admin = COALESCE($3, is_system_admin), \
             is_disabled = COALESCE($4, is_disabled) WHERE id = $1",
        )
        .bind(id.to_string())
        .bind(name.map(String::from))
        .bind(is_system_admin.map(i64::from))
        .bind(is_disabled.map(i64::from))
        .execute(&mut *self.inner)
        .await
        .map_err(statement("changing a user"))?;
        Ok(())
    }

    /// Gives a user another password, in PHC form, and ends all sessions of that user but one.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn set_password(
        &mut self,
        id: UserId,
        password_hash: &str,
        but: Option<glovebox_protocol::ids::SessionId>,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE users SET password_hash = $2 WHERE id = $1")
            .bind(id.to_string())
            .bind(password_hash)
            .execute(&mut *self.inner)
            .await
            .map_err(statement("changing a password"))?;
        self.end_sessions_of(id, but).await
    }

    /// Nobody else changes who looks after the installation until these changes are done.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn hold_system_admins(&mut self) -> Result<(), StoreError> {
        let select = "SELECT id FROM users WHERE is_system_admin = 1 OR id = $1 ORDER BY id \
             FOR NO KEY UPDATE";
        self.hold(select, "", "holding the system admins").await
    }

    /// How many users look after the installation and may sign in, as these changes see it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn count_system_admins(&mut self) -> Result<i64, StoreError> {
        sqlx::query(ADMINS)
            .fetch_one(&mut *self.inner)
            .await
            .map_err(statement("counting administrators"))?
            .number("n")
    }
}
