//! One's own account: signing in and out, sessions, password, keys.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use glovebox_protocol::ids::{ApiKeyId, AttemptId, SessionId, WorkspaceId};
use glovebox_store::{
    Access, Actor, ActorKind, ApiKey, Entry, KeyScope, NewApiKey, NewSession, Permission, Session,
    StoreError, Token, User,
};
use zeroize::Zeroizing;

use super::App;
use super::users::UserError;
use crate::auth::PasswordError;

/// How long a session lasts, in days.
const SESSION_DAYS: i64 = 14;

/// How many failed attempts from one network address, or by one session, are put up with in
/// [`ATTEMPT_WINDOW`].
const ATTEMPTS: i64 = 10;

/// How many to sign in to one account are, wherever they come from. More than from one address, or
/// a stranger could keep anybody out by guessing.
const ATTEMPTS_OF_ACCOUNT: i64 = 100;

/// For how long failed sign-ins count.
pub(crate) const ATTEMPT_WINDOW: Duration = Duration::from_secs(15 * 60);

/// The longest e-mail address, in bytes.
pub(crate) const MAX_EMAIL_BYTES: usize = 254;

/// The beginning of every session's token.
const SESSION_PREFIX: &str = "gbsn_";

/// The beginning of every key's token.
pub const KEY_PREFIX: &str = "gbk_";

/// Why somebody was not signed in.
#[derive(Debug, thiserror::Error)]
pub enum SignInError {
    /// Address and password do not belong together.
    #[error("e-mail address or password is wrong")]
    Wrong,
    /// It was tried too often.
    #[error("too many failed attempts")]
    TooMany,
    /// The password could not be looked at.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a key was not made.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The name is empty or too long.
    #[error("a key's name has 1 to 100 characters")]
    Name,
    /// It may do nothing.
    #[error("a key needs at least one scope")]
    NoScope,
    /// Only whoever may run code makes keys.
    #[error("a viewer makes no keys")]
    Forbidden,
    /// There is no workspace of that name.
    #[error("there is no workspace `{0}`")]
    NoWorkspace(String),
    /// There is none, or it is somebody else's.
    #[error("there is no such key")]
    NotFound,
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl App {
    /// Signs somebody in with a password, and gives the token of the session.
    ///
    /// # Errors
    /// When the password is wrong, or it was tried too often.
    pub async fn sign_in(
        &self,
        mut actor: Actor,
        email: &str,
        password: Zeroizing<String>,
        user_agent: &str,
    ) -> Result<(User, Token), SignInError> {
        let email = email.trim().to_lowercase();
        if email.len() > MAX_EMAIL_BYTES || email.chars().any(char::is_control) {
            // Nobody has such an address, and nothing of it is kept.
            return Err(SignInError::Wrong);
        }
        let subjects = [
            (format!("email:{email}"), ATTEMPTS_OF_ACCOUNT),
            (format!("address:{}", actor.address), ATTEMPTS),
        ];
        let attempt = self.begin_attempt(&subjects).await?;
        let user = self.store().user_by_email(&email).await?;
        let user = user.filter(|user| !user.is_disabled);
        let hash = user.as_ref().and_then(|user| user.password_hash.clone());
        let verified = self.passwords().verify(password, hash).await;
        let is_right = match verified {
            Ok(is_right) => is_right,
            Err(error) => {
                // Nobody knows whether it was right.
                self.store().forget_sign_in(attempt).await?;
                return Err(error.into());
            }
        };
        let Some(user) = user.filter(|_| is_right) else {
            actor.kind = ActorKind::Unknown;
            let mut changes = self.store().begin().await?;
            let entry = session_entry("session.refuse", None, &email);
            changes.record(&actor, entry).await?;
            changes.commit().await?;
            return Err(SignInError::Wrong);
        };
        self.store().forget_sign_in(attempt).await?;
        let token = self.open_session(actor, &user, user_agent).await?;
        Ok((user, token))
    }

    /// Notes an attempt before anything is looked at, so that of many at once no more than the limit
    /// are. It counts until it is forgotten.
    async fn begin_attempt(&self, subjects: &[(String, i64)]) -> Result<AttemptId, SignInError> {
        let attempt = AttemptId::new();
        let since = Utc::now() - ATTEMPT_WINDOW;
        for (subject, limit) in subjects {
            if self.store().note_sign_in(attempt, subject, since).await? > *limit {
                // One that is not looked at makes nobody wait longer.
                self.store().forget_sign_in(attempt).await?;
                return Err(SignInError::TooMany);
            }
        }
        Ok(attempt)
    }

    /// Opens a session for a user who has proven to be it.
    pub(crate) async fn open_session(
        &self,
        mut actor: Actor,
        user: &User,
        user_agent: &str,
    ) -> Result<Token, StoreError> {
        let token = Token::random(SESSION_PREFIX)?;
        actor.kind = ActorKind::User;
        actor.id = Some(user.id.to_string());
        actor.name.clone_from(&user.email);
        let new = NewSession {
            user_id: user.id,
            token: token.hash(),
            address: actor.address.clone(),
            user_agent: user_agent.chars().take(200).collect(),
            expires_at: Utc::now() + TimeDelta::days(SESSION_DAYS),
        };
        let mut changes = self.store().begin().await?;
        let id = changes.create_session(&new).await?;
        changes
            .record(
                &actor,
                session_entry("session.create", Some(id), &user.email),
            )
            .await?;
        changes.commit().await?;
        Ok(token)
    }

    /// Ends one session of a user. Says whether there was one.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn end_session(
        &self,
        actor: &Actor,
        user: &User,
        id: SessionId,
    ) -> Result<bool, StoreError> {
        let mut changes = self.store().begin().await?;
        if !changes.end_session(user.id, id).await? {
            return Ok(false);
        }
        changes
            .record(actor, session_entry("session.end", Some(id), &user.email))
            .await?;
        changes.commit().await?;
        Ok(true)
    }

    /// Gives a user another password, and ends all its other sessions.
    ///
    /// # Errors
    /// When the present one is wrong, or the new one cannot be used.
    pub async fn change_password(
        &self,
        actor: &Actor,
        user: &User,
        session: &Session,
        present: Zeroizing<String>,
        new: Zeroizing<String>,
    ) -> Result<(), UserError> {
        let subject = (format!("password:{}", user.id), ATTEMPTS);
        let attempt = match self.begin_attempt(&[subject]).await {
            Ok(attempt) => attempt,
            Err(SignInError::Store(error)) => return Err(error.into()),
            Err(_) => return Err(UserError::TooMany),
        };
        let hash = user.password_hash.clone();
        if !self.passwords().verify(present, hash).await? {
            return Err(UserError::WrongPassword);
        }
        self.store().forget_sign_in(attempt).await?;
        let hash = self.passwords().hash(new).await?;
        let mut changes = self.store().begin().await?;
        changes
            .set_password(user.id, &hash, Some(session.id))
            .await?;
        let entry = Entry {
            action: "user.update",
            object_kind: "user",
            object_id: Some(user.id.to_string()),
            object: &user.email,
            workspace: None,
            fields: &["password"],
        };
        changes.record(actor, entry).await?;
        changes.commit().await?;
        Ok(())
    }

    /// The keys of a workspace that the caller may see: its own, and all where it manages it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn api_keys(&self, access: &Access) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.store().api_keys(access.workspace()).await?;
        let manages = access.may(Permission::Manage);
        Ok(keys
            .into_iter()
            .filter(|key| manages || (key.user_id.is_some() && key.user_id == access.user()))
            .collect())
    }

    /// Makes a key that acts as the caller. Its token is not to be had again.
    ///
    /// # Errors
    /// When the caller may not, or it could do nothing.
    pub async fn create_api_key(
        &self,
        actor: &Actor,
        access: &Access,
        name: &str,
        scopes: Vec<KeyScope>,
    ) -> Result<(ApiKeyId, Token), KeyError> {
        if !access.may(Permission::RunCode) {
            return Err(KeyError::Forbidden);
        }
        let new = NewKey {
            workspace: access.workspace(),
            name,
            scopes,
        };
        self.make_api_key(actor, access.user(), new).await
    }

    /// Makes a key for a service, for whoever owns the machine.
    ///
    /// # Errors
    /// When there is no such workspace, or the key could do nothing.
    pub async fn create_service_key(
        &self,
        actor: &Actor,
        workspace: &str,
        name: &str,
        scopes: Vec<KeyScope>,
    ) -> Result<(ApiKeyId, Token), KeyError> {
        let found = self.store().workspace_by_name(workspace).await?;
        let found = found.ok_or_else(|| KeyError::NoWorkspace(workspace.to_owned()))?;
        let new = NewKey {
            workspace: found.id,
            name,
            scopes,
        };
        self.make_api_key(actor, None, new).await
    }

    /// Makes a key for a person, or for a service.
    pub(crate) async fn make_api_key(
        &self,
        actor: &Actor,
        user: Option<glovebox_protocol::ids::UserId>,
        new: NewKey<'_>,
    ) -> Result<(ApiKeyId, Token), KeyError> {
        let name = super::users::checked_name(new.name).map_err(|_| KeyError::Name)?;
        if new.scopes.is_empty() {
            return Err(KeyError::NoScope);
        }
        let token = Token::random(KEY_PREFIX)?;
        let row = NewApiKey {
            workspace_id: new.workspace,
            user_id: user,
            name: name.clone(),
            token: token.hash(),
            scopes: new.scopes,
        };
        let mut changes = self.store().begin().await?;
        if let Some(user) = user {
            // Whoever is taken out of the workspace meanwhile leaves no key behind.
            changes.hold_workspace(new.workspace).await?;
            let role = changes.role_of(new.workspace, user).await?;
            role.filter(|role| role.may(Permission::RunCode))
                .ok_or(KeyError::Forbidden)?;
        }
        let id = changes.create_api_key(&row).await?;
        let entry = key_entry(
            "api_key.create",
            id,
            &name,
            new.workspace,
            &["name", "scopes"],
        );
        changes.record(actor, entry).await?;
        changes.commit().await?;
        Ok((id, token))
    }

    /// Revokes a key that the caller may see.
    ///
    /// # Errors
    /// When there is none.
    pub async fn revoke_api_key(
        &self,
        actor: &Actor,
        access: &Access,
        id: ApiKeyId,
    ) -> Result<(), KeyError> {
        let keys = self.api_keys(access).await?;
        let key = keys.into_iter().find(|key| key.id == id);
        let key = key.ok_or(KeyError::NotFound)?;
        let mut changes = self.store().begin().await?;
        if !changes.revoke_api_key(access.workspace(), id).await? {
            return Err(KeyError::NotFound);
        }
        let entry = key_entry("api_key.revoke", id, &key.name, access.workspace(), &[]);
        changes.record(actor, entry).await?;
        changes.commit().await?;
        Ok(())
    }
}

/// A key to be made.
#[derive(Debug)]
pub(crate) struct NewKey<'a> {
    pub(crate) workspace: WorkspaceId,
    pub(crate) name: &'a str,
    pub(crate) scopes: Vec<KeyScope>,
}

fn session_entry<'a>(action: &'a str, id: Option<SessionId>, email: &'a str) -> Entry<'a> {
    Entry {
        action,
        object_kind: "session",
        object_id: id.map(|id| id.to_string()),
        object: email,
        workspace: None,
        fields: &[],
    }
}

pub(crate) fn key_entry<'a>(
    action: &'a str,
    id: ApiKeyId,
    name: &'a str,
    workspace: WorkspaceId,
    fields: &'a [&'a str],
) -> Entry<'a> {
    Entry {
        action,
        object_kind: "api_key",
        object_id: Some(id.to_string()),
        object: name,
        workspace: Some(workspace),
        fields,
    }
}
