//! People, and with what they sign in and call.

use chrono::{DateTime, Utc};
use glovebox_store::{ApiKey, Member, Session, User};
use serde::Serialize;
use utoipa::ToSchema;

/// A person.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserView {
    pub(crate) id: String,
    pub(crate) email: String,
    pub(crate) name: String,
    pub(crate) is_system_admin: bool,
    pub(crate) is_disabled: bool,
    pub(crate) created_at: DateTime<Utc>,
}

impl From<User> for UserView {
    fn from(user: User) -> Self {
        Self {
            id: user.id.to_string(),
            email: user.email,
            name: user.name,
            is_system_admin: user.is_system_admin,
            is_disabled: user.is_disabled,
            created_at: user.created_at,
        }
    }
}

/// A sign-in in one browser.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SessionView {
    pub(crate) id: String,
    /// The network address that it was opened from.
    pub(crate) address: String,
    /// What the browser called itself.
    pub(crate) user_agent: String,
    pub(crate) created_at: DateTime<Utc>,
    /// To a few minutes.
    pub(crate) seen_at: DateTime<Utc>,
    pub(crate) expires_at: DateTime<Utc>,
    /// Whether this very request came with it.
    pub(crate) is_this: bool,
}

impl SessionView {
    pub(crate) fn of(session: Session, this: &Session) -> Self {
        Self {
            is_this: session.id == this.id,
            id: session.id.to_string(),
            address: session.address,
            user_agent: session.user_agent,
            created_at: session.created_at,
            seen_at: session.seen_at,
            expires_at: session.expires_at,
        }
    }
}

/// A key, without its token.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiKeyView {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The person it acts as; nothing for a service's.
    pub(crate) user_id: Option<String>,
    pub(crate) scopes: Vec<String>,
    pub(crate) created_at: DateTime<Utc>,
    /// To a minute.
    pub(crate) used_at: Option<DateTime<Utc>>,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        Self {
            id: key.id.to_string(),
            name: key.name,
            user_id: key.user_id.map(|id| id.to_string()),
            scopes: key.scopes.iter().map(ToString::to_string).collect(),
            created_at: key.created_at,
            used_at: key.used_at,
        }
    }
}

/// A member of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MemberView {
    pub(crate) user_id: String,
    pub(crate) email: String,
    pub(crate) name: String,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub(crate) role: String,
    pub(crate) created_at: DateTime<Utc>,
}

impl From<Member> for MemberView {
    fn from(member: Member) -> Self {
        Self {
            user_id: member.user_id.to_string(),
            email: member.email,
            name: member.name,
            role: member.role.to_string(),
            created_at: member.created_at,
        }
    }
}
