//! Sign-ins: who, from where, until when. And how often it was tried.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{SessionId, UserId};
use sqlx::any::AnyRow;

use crate::database::{Columns as _, Store, Transaction, now_ms, statement, to_ms};
use crate::error::StoreError;
use crate::token::TokenHash;
use crate::user::{self, User};

/// One sign-in of a person in one browser.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id, which is no secret.
    pub id: SessionId,
    /// Whose it is.
    pub user_id: UserId,
    /// The network address that it was opened from.
    pub address: String,
    /// What the browser called itself.
    pub user_agent: String,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When it was last used, to a few minutes.
    pub seen_at: DateTime<Utc>,
    /// When it ends by itself.
    pub expires_at: DateTime<Utc>,
}

/// What a new session is made of.
#[derive(Debug, Clone)]
pub struct NewSession {
    /// Whose it is.
    pub user_id: UserId,
    /// What its cookie holds, hashed.
    pub token: TokenHash,
    /// The network address that it is opened from.
    pub address: String,
    /// What the browser calls itself.
    pub user_agent: String,
    /// When it ends by itself.
    pub expires_at: DateTime<Utc>,
}

fn read(row: &AnyRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: row.word("session_id")?,
        user_id: row.word("user_id")?,
        address: row.text("address")?,
        user_agent: row.text("user_agent")?,
        created_at: row.time("opened_at")?,
        seen_at: row.time("seen_at")?,
        expires_at: row.time("expires_at")?,
    })
}

const COLUMNS: &str = "sessions.id AS session_id, sessions.user_id, sessions.address, \
     sessions.user_agent, sessions.created_at AS opened_at, sessions.seen_at, sessions.expires_at";

impl Store {
    /// The session of a token and its user, if it has not ended and the user may sign in.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn session(&self, token: &TokenHash) -> Result<Option<(Session, User)>, StoreError> {
        let users: Vec<_> = user::COLUMNS
            .split(", ")
            .map(|column| format!("users.{column}"))
            .collect();
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS}, {} FROM sessions JOIN users ON users.id = sessions.user_id \
             WHERE token_hash = $1 AND expires_at > $2 AND users.is_disabled = 0",
            users.join(", ")
        )))
        .bind(token.as_str())
        .bind(now_ms())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for a session"))?;
        row.map(|row| Ok((read(&row)?, user::read(&row)?)))
            .transpose()
    }

    /// The sessions of a user that have not ended, the newest first.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn sessions_of(&self, user: UserId) -> Result<Vec<Session>, StoreError> {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT {COLUMNS} FROM sessions WHERE user_id = $1 AND expires_at > $2 \
             ORDER BY sessions.id DESC"
        )))
        .bind(user.to_string())
        .bind(now_ms())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing sessions"))?;
        rows.iter().map(read).collect()
    }

    /// Whether a session has neither ended nor run out: for what goes on longer than a request.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn is_session(&self, id: SessionId) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 AS one FROM sessions WHERE id = $1 AND expires_at > $2")
            .bind(id.to_string())
            .bind(now_ms())
            .fetch_optional(&self.pool)
            .await
            .map_err(statement("looking for a session"))?;
        Ok(row.is_some())
    }

    /// Notes that a session was used just now.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn touch_session(&self, id: SessionId) -> Result<(), StoreError> {
        sqlx::query("UPDATE sessions SET seen_at = $2 WHERE id = $1")
            .bind(id.to_string())
            .bind(now_ms())
            .execute(&self.pool)
            .await
            .map_err(statement("noting the use of a session"))?;
        Ok(())
    }

    /// Notes one failed sign-in of `subject`: an e-mail address, or a network address.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn note_failed_sign_in(&self, subject: &str) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO sign_in_attempts (subject, at) VALUES ($1, $2)")
            .bind(subject)
            .bind(now_ms())
            .execute(&self.pool)
            .await
            .map_err(statement("noting a failed sign-in"))?;
        Ok(())
    }

    /// How many sign-ins of `subject` failed since then. Forgets those of anybody from before.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn failed_sign_ins(
        &self,
        subject: &str,
        since: DateTime<Utc>,
    ) -> Result<i64, StoreError> {
        sqlx::query("DELETE FROM sign_in_attempts WHERE at < $1")
            .bind(to_ms(since))
            .execute(&self.pool)
            .await
            .map_err(statement("forgetting old failed sign-ins"))?;
        sqlx::query("SELECT COUNT(*) AS n FROM sign_in_attempts WHERE subject = $1 AND at >= $2")
            .bind(subject)
            .bind(to_ms(since))
            .fetch_one(&self.pool)
            .await
            .map_err(statement("counting failed sign-ins"))?
            .number("n")
    }
}

impl Transaction {
    /// Opens a session.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn create_session(&mut self, new: &NewSession) -> Result<SessionId, StoreError> {
        let id = SessionId::new();
        let now = now_ms();
        sqlx::query(
            "INSERT INTO sessions (id, user_id, token_hash, address, user_agent, created_at, \
             seen_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $6, $7)",
        )
        .bind(id.to_string())
        .bind(new.user_id.to_string())
        .bind(new.token.as_str())
        .bind(&new.address)
        .bind(&new.user_agent)
        .bind(now)
        .bind(to_ms(new.expires_at))
        .execute(&mut *self.inner)
        .await
        .map_err(statement("opening a session"))?;
        Ok(id)
    }

    /// Ends one session of a user. Says whether there was one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end_session(&mut self, user: UserId, id: SessionId) -> Result<bool, StoreError> {
        let done = sqlx::query("DELETE FROM sessions WHERE id = $1 AND user_id = $2")
            .bind(id.to_string())
            .bind(user.to_string())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("ending a session"))?;
        Ok(done.rows_affected() > 0)
    }

    /// Ends all sessions of a user but one.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn end_sessions_of(
        &mut self,
        user: UserId,
        but: Option<SessionId>,
    ) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM sessions WHERE user_id = $1 AND id <> $2")
            .bind(user.to_string())
            .bind(but.map_or_else(String::new, |id| id.to_string()))
            .execute(&mut *self.inner)
            .await
            .map_err(statement("ending sessions"))?;
        Ok(())
    }
}
