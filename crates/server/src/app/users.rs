//! Users: made, changed and listed by system admins.

use glovebox_protocol::ids::{UserId, WorkspaceId};
use glovebox_store::{Actor, Entry, NewUser, Role, StoreError, User};
use zeroize::Zeroizing;

use super::App;
use super::account::MAX_EMAIL_BYTES;
use super::workspaces::member_entry;
use crate::auth::PasswordError;

/// What the audit log says of a user who was made.
pub(crate) const CREATED: [&str; 4] = ["email", "name", "password", "is_system_admin"];

/// Why a user was not made or changed.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// There is none.
    #[error("there is no such user")]
    NotFound,
    /// The workspace that it is to belong to is not there.
    #[error("there is no such workspace")]
    NoWorkspace,
    /// The address is none.
    #[error("that is no e-mail address")]
    Email,
    /// The name is empty or too long.
    #[error("a name has 1 to 100 characters")]
    Name,
    /// The link is not the last one that was made, too old, or used.
    #[error("this link is not good any more")]
    Link,
    /// Somebody has to look after the installation.
    #[error("there has to be a system admin who can sign in")]
    LastAdmin,
    /// The password is not the present one.
    #[error("that is not the present password")]
    WrongPassword,
    /// It was tried too often.
    #[error("too many failed attempts")]
    TooMany,
    /// The password cannot be used.
    #[error(transparent)]
    Password(#[from] PasswordError),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What is to be changed of a user; what is `None` stays.
#[derive(Debug, Clone, Default)]
pub struct UserChanges {
    /// Its name.
    pub name: Option<String>,
    /// Whether it looks after the installation.
    pub is_system_admin: Option<bool>,
    /// Whether it may not sign in.
    pub is_disabled: Option<bool>,
}

/// A user to be made.
#[derive(Debug)]
pub struct Person {
    /// Its e-mail address.
    pub email: String,
    /// Its name.
    pub name: String,
    /// Its password, which it is told by whoever makes it.
    pub password: Zeroizing<String>,
    /// Whether it looks after the installation.
    pub is_system_admin: bool,
    /// A workspace that it belongs to at once, and as what.
    pub membership: Option<(WorkspaceId, Role)>,
}

impl App {
    /// Makes a user.
    ///
    /// # Errors
    /// When what is given cannot be used, or the address is taken.
    pub async fn create_user(&self, actor: &Actor, person: Person) -> Result<User, UserError> {
        let new = NewUser {
            email: checked_email(&person.email)?,
            name: checked_name(&person.name)?,
            password_hash: Some(self.passwords().hash(person.password).await?),
            is_system_admin: person.is_system_admin,
        };
        let mut changes = self.store().begin().await?;
        let id = changes.create_user(&new).await?;
        changes
            .record(actor, entry("user.create", id, &new.email, &CREATED))
            .await?;
        if let Some((workspace, role)) = person.membership {
            let found = changes.hold_workspace(workspace).await?;
            found.ok_or(UserError::NoWorkspace)?;
            changes.add_member(workspace, id, role).await?;
            let entry = member_entry("member.add", workspace, id, &new.email, &["role"]);
            changes.record(actor, entry).await?;
        }
        changes.commit().await?;
        self.store().user(id).await?.ok_or(UserError::NotFound)
    }

    /// Makes a system admin, for whoever owns the machine: the first one gets the first workspace.
    ///
    /// # Errors
    /// When what is given cannot be used, or the address is taken.
    pub async fn create_system_admin(
        &self,
        actor: &Actor,
        email: &str,
        name: &str,
        password: Zeroizing<String>,
    ) -> Result<User, UserError> {
        let new = NewUser {
            email: checked_email(email)?,
            name: checked_name(name)?,
            password_hash: Some(self.passwords().hash(password).await?),
            is_system_admin: true,
        };
        let mut changes = self.store().begin().await?;
        let id = changes.create_user(&new).await?;
        super::setup::record_first(&mut changes, actor, id, &new).await?;
        changes.commit().await?;
        self.store().user(id).await?.ok_or(UserError::NotFound)
    }

    /// Gives a user another password, for whoever owns the machine, and ends all its sessions.
    ///
    /// # Errors
    /// When there is none, or the password cannot be used.
    pub async fn reset_password(
        &self,
        actor: &Actor,
        email: &str,
        password: Zeroizing<String>,
    ) -> Result<User, UserError> {
        let user = self.store().user_by_email(&checked_email(email)?).await?;
        let user = user.ok_or(UserError::NotFound)?;
        let hash = self.passwords().hash(password).await?;
        let mut changes = self.store().begin().await?;
        changes.set_password(user.id, &hash, None).await?;
        changes
            .record(
                actor,
                entry("user.update", user.id, &user.email, &["password"]),
            )
            .await?;
        changes.commit().await?;
        Ok(user)
    }

    /// Changes a user. One that may not sign in any more is signed out everywhere, and what it runs
    /// is ended.
    ///
    /// # Errors
    /// When there is none, or nobody would be left to look after the installation.
    pub async fn change_user(
        &self,
        actor: &Actor,
        id: UserId,
        wanted: UserChanges,
    ) -> Result<User, UserError> {
        let user = self.store().user(id).await?.ok_or(UserError::NotFound)?;
        let name = wanted.name.as_deref().map(checked_name).transpose()?;
        let mut fields = Vec::new();
        if name.as_ref().is_some_and(|name| *name != user.name) {
            fields.push("name");
        }
        if wanted
            .is_system_admin
            .is_some_and(|is| is != user.is_system_admin)
        {
            fields.push("is_system_admin");
        }
        if wanted.is_disabled.is_some_and(|is| is != user.is_disabled) {
            fields.push("is_disabled");
        }
        if fields.is_empty() {
            return Ok(user);
        }
        let mut changes = self.store().begin().await?;
        // Of two who take it from each other at once one comes second, and sees what is left.
        changes.hold_system_admins().await?;
        changes
            .change_user(
                id,
                name.as_deref(),
                wanted.is_system_admin,
                wanted.is_disabled,
            )
            .await?;
        if changes.count_system_admins().await? == 0 {
            return Err(UserError::LastAdmin);
        }
        if wanted.is_disabled == Some(true) {
            changes.end_sessions_of(id, None).await?;
        }
        changes
            .record(actor, entry("user.update", id, &user.email, &fields))
            .await?;
        if wanted.is_disabled == Some(true) {
            self.commit_and_end_work(changes, id, None).await?;
        } else {
            changes.commit().await?;
        }
        self.store().user(id).await?.ok_or(UserError::NotFound)
    }
}

pub(crate) fn entry<'a>(
    action: &'a str,
    id: UserId,
    email: &'a str,
    fields: &'a [&'a str],
) -> Entry<'a> {
    Entry {
        action,
        object_kind: "user",
        object_id: Some(id.to_string()),
        object: email,
        workspace: None,
        fields,
    }
}

/// An e-mail address as it is stored: lowercase, with something on both sides of one `@`. Whether
/// mail arrives there is not asked: none is sent.
pub(crate) fn checked_email(text: &str) -> Result<String, UserError> {
    let email = text.trim().to_lowercase();
    let parts = email.split_once('@');
    let is_one = parts.is_some_and(|(before, after)| {
        !before.is_empty() && !after.is_empty() && !after.contains('@')
    });
    let is_plain = email
        .chars()
        .all(|c| !c.is_whitespace() && !c.is_control() && !matches!(c, '<' | '>' | ',' | '"'));
    if is_one && is_plain && email.len() <= MAX_EMAIL_BYTES {
        Ok(email)
    } else {
        Err(UserError::Email)
    }
}

/// A name without what is only layout.
pub(crate) fn checked_name(text: &str) -> Result<String, UserError> {
    let name = text.trim();
    let is_fine = (1..=100).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if is_fine {
        Ok(name.to_owned())
    } else {
        Err(UserError::Name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_stored_in_one_form() {
        assert_eq!(
            checked_email(" Ada@Example.COM ").unwrap(),
            "ada@example.com"
        );
        for bad in ["", "ada", "@b", "a@", "a@b@c", "a b@c", "<a@b>"] {
            assert!(checked_email(bad).is_err(), "{bad}");
        }
    }
}
