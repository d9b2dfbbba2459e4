//! The first run: one link, one administrator, one workspace.

use chrono::{DateTime, TimeDelta, Utc};
use glovebox_protocol::ids::UserId;
use glovebox_store::{Actor, NewUser, StoreError, Token, Transaction};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::App;
use super::users::{self, UserError, checked_email, checked_name};
use super::workspaces;

/// The name of the setting that the link's hash is stored under.
const SETUP: &str = "setup_link";

/// How long a link is good for, in hours.
const LINK_HOURS: i64 = 24;

/// The workspace that the first run makes.
pub(crate) const MAIN: &str = "Main";

/// What is stored of a link.
#[derive(Debug, Serialize, Deserialize)]
struct Link {
    hash: String,
    expires_at: DateTime<Utc>,
}

/// Who looks after the installation from now on.
#[derive(Debug)]
pub struct FirstAdmin {
    /// Its e-mail address.
    pub email: String,
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: Zeroizing<String>,
}

impl App {
    /// Whether nobody looks after the installation yet.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn needs_setup(&self) -> Result<bool, StoreError> {
        Ok(self.store().count_system_admins().await? == 0)
    }

    /// A new link for the first administrator, in place of the one before; nothing where there
    /// is an administrator.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn new_setup_link(&self) -> Result<Option<String>, StoreError> {
        if !self.needs_setup().await? {
            return Ok(None);
        }
        let token = Token::random("")?;
        let link = Link {
            hash: token.hash().as_str().to_owned(),
            expires_at: Utc::now() + TimeDelta::hours(LINK_HOURS),
        };
        let mut changes = self.store().begin().await?;
        changes.set(SETUP, &Some(link)).await?;
        changes.commit().await?;
        let address = self.config().address();
        Ok(Some(format!("{address}/setup#token={}", token.reveal())))
    }

    /// Makes the first administrator, and the first workspace with it as its owner.
    ///
    /// # Errors
    /// When the link is not the last one or too old, there is an administrator, or what is given
    /// cannot be used.
    pub async fn set_up(
        &self,
        mut actor: Actor,
        token: &str,
        first: FirstAdmin,
    ) -> Result<UserId, UserError> {
        // Nobody without the link makes the server hash anything.
        let link: Option<Option<Link>> = self.store().setting(SETUP).await?;
        if !is_good(link.flatten().as_ref(), token) {
            return Err(UserError::Link);
        }
        let new = NewUser {
            email: checked_email(&first.email)?,
            name: checked_name(&first.name)?,
            password_hash: Some(self.passwords().hash(first.password).await?),
            is_system_admin: true,
        };
        let mut changes = self.store().begin().await?;
        // Of two with the same link one comes second, and finds an administrator.
        let link: Option<Option<Link>> = changes.setting(SETUP).await?;
        let is_good = is_good(link.flatten().as_ref(), token);
        if !is_good || changes.count_system_admins().await? > 0 {
            return Err(UserError::Link);
        }
        changes.set(SETUP, &None::<Link>).await?;
        let user = changes.create_user(&new).await?;
        actor.id = Some(user.to_string());
        actor.name.clone_from(&new.email);
        record_first(&mut changes, &actor, user, &new).await?;
        changes.commit().await?;
        Ok(user)
    }
}

/// Whether a token is that of the link, and not too old.
fn is_good(link: Option<&Link>, token: &str) -> bool {
    let given = Token::unverified(token).hash();
    link.is_some_and(|link| link.hash == given.as_str() && link.expires_at > Utc::now())
}

/// Writes down that a system admin was made and, where there is no workspace yet, makes it the owner
/// of the first.
pub(crate) async fn record_first(
    changes: &mut Transaction,
    actor: &Actor,
    user: UserId,
    new: &NewUser,
) -> Result<(), StoreError> {
    let made = users::entry("user.create", user, &new.email, &users::CREATED);
    changes.record(actor, made).await?;
    if changes.count_workspaces().await? == 0 {
        workspaces::make(changes, actor, MAIN, user).await?;
    }
    Ok(())
}
