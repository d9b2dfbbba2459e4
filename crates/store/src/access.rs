//! The proof that somebody may look into a workspace.

use glovebox_protocol::ids::{ApiKeyId, UserId, WorkspaceId};

use crate::api_key::KeyScope;
use crate::database::{Columns as _, Store, now_ms, statement};
use crate::error::StoreError;
use crate::member::Role;
use crate::token::TokenHash;
use crate::words::words;

words! {
    /// What somebody may do in a workspace.
    Permission {
        /// See what is shared in it.
        Read = "workspace:read",
        /// Write threads and the knowledge base.
        Write = "workspace:write",
        /// Start sandboxes and run code.
        RunCode = "code_execution:run",
        /// Change members, roles and keys.
        Manage = "workspace:manage",
    }
}

/// Who may look into which workspace, and as what. Only rows of the database make one.
#[derive(Debug, Clone)]
pub struct Access {
    workspace: WorkspaceId,
    user: Option<UserId>,
    api_key: Option<ApiKeyId>,
    role: Role,
    scopes: Option<Vec<KeyScope>>,
    name: String,
}

impl Access {
    /// Which workspace.
    #[must_use]
    pub const fn workspace(&self) -> WorkspaceId {
        self.workspace
    }

    /// The person: who is signed in, or whose key is used; `None` for a service's key.
    #[must_use]
    pub const fn user(&self) -> Option<UserId> {
        self.user
    }

    /// The key that is used, if it is one.
    #[must_use]
    pub const fn api_key(&self) -> Option<ApiKeyId> {
        self.api_key
    }

    /// The present role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What to call it in lists: an e-mail address, or the name of a service's key.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the role may do something.
    #[must_use]
    pub fn may(&self, permission: Permission) -> bool {
        self.role.may(permission)
    }

    /// The person as rows have it; empty, which no row has, where there is none.
    pub(crate) fn user_text(&self) -> String {
        self.user.map_or_else(String::new, |id| id.to_string())
    }

    /// The key as rows have it; empty, which no row has, where there is none.
    pub(crate) fn api_key_text(&self) -> String {
        self.api_key.map_or_else(String::new, |id| id.to_string())
    }

    /// Whether it manages the workspace, as statements take it.
    pub(crate) fn manages(&self) -> i64 {
        i64::from(self.may(Permission::Manage))
    }

    /// Whether what this user or this service's key made is one's own.
    #[must_use]
    pub fn is_own(&self, user: Option<UserId>, api_key: Option<ApiKeyId>) -> bool {
        match user {
            Some(owner) => self.user == Some(owner),
            None => api_key.is_some() && self.api_key == api_key && self.user.is_none(),
        }
    }

    /// Whether what is used to call may do something at all: a session may whatever its person
    /// may, a key only what it was made for.
    #[must_use]
    pub fn has_scope(&self, scope: KeyScope) -> bool {
        self.scopes
            .as_ref()
            .is_none_or(|scopes| scopes.contains(&scope))
    }

    /// Whether something that this user or this service's key made may be seen: one's own, and
    /// what services made by whoever manages the workspace.
    #[must_use]
    pub fn may_see(&self, user: Option<UserId>, api_key: Option<ApiKeyId>) -> bool {
        self.is_own(user, api_key) || (user.is_none() && self.may(Permission::Manage))
    }
}

impl Store {
    /// What a user is in a workspace, if it is a member there and may sign in.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn access_of_user(
        &self,
        user: UserId,
        workspace: WorkspaceId,
    ) -> Result<Option<Access>, StoreError> {
        let row = sqlx::query(
            "SELECT memberships.role, users.email FROM memberships \
             JOIN users ON users.id = memberships.user_id \
             WHERE memberships.user_id = $1 AND memberships.workspace_id = $2 \
             AND users.is_disabled = 0",
        )
        .bind(user.to_string())
        .bind(workspace.to_string())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for a membership"))?;
        row.map(|row| {
            Ok(Access {
                workspace,
                user: Some(user),
                api_key: None,
                role: row.word("role")?,
                scopes: None,
                name: row.text("email")?,
            })
        })
        .transpose()
    }

    /// What the holder of a key is in the key's workspace. A person's key has the person's
    /// present role, and ends with the membership; a service's has that of an editor.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn access_of_key(&self, token: &TokenHash) -> Result<Option<Access>, StoreError> {
        let access = self.key_where("token_hash", token.as_str()).await?;
        let Some(id) = access.as_ref().and_then(|access| access.api_key) else {
            return Ok(None);
        };
        sqlx::query("UPDATE api_keys SET used_at = $2 WHERE id = $1 AND COALESCE(used_at, 0) < $3")
            .bind(id.to_string())
            .bind(now_ms())
            .bind(now_ms() - USE_IS_NOTED_EVERY_MS)
            .execute(&self.pool)
            .await
            .map_err(statement("noting the use of an API key"))?;
        Ok(access)
    }

    /// What whoever had this access is now: for what goes on longer than a request.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn present_access(&self, before: &Access) -> Result<Option<Access>, StoreError> {
        let now = match (before.api_key, before.user) {
            (Some(key), _) => self.key_where("id", &key.to_string()).await?,
            (None, Some(user)) => self.access_of_user(user, before.workspace).await?,
            (None, None) => None,
        };
        Ok(now.filter(|now| now.workspace == before.workspace))
    }

    /// The access of a key that is not revoked, by one of its columns.
    async fn key_where(
        &self,
        column: &'static str,
        value: &str,
    ) -> Result<Option<Access>, StoreError> {
        let row = sqlx::query(sqlx::AssertSqlSafe(format!(
            "SELECT api_keys.id, api_keys.workspace_id, api_keys.user_id, api_keys.name, \
             api_keys.scopes, memberships.role, users.email FROM api_keys \
             LEFT JOIN users ON users.id = api_keys.user_id AND users.is_disabled = 0 \
             LEFT JOIN memberships ON memberships.user_id = users.id \
             AND memberships.workspace_id = api_keys.workspace_id \
             WHERE api_keys.{column} = $1 AND api_keys.revoked_at IS NULL"
        )))
        .bind(value.to_owned())
        .fetch_optional(&self.pool)
        .await
        .map_err(statement("looking for an API key"))?;
        let Some(row) = row else { return Ok(None) };
        let user: Option<UserId> = row.maybe_word("user_id")?;
        let role = match user {
            None => Some(Role::Editor),
            Some(_) => row.maybe_word("role")?,
        };
        let Some(role) = role else { return Ok(None) };
        Ok(Some(Access {
            workspace: row.word("workspace_id")?,
            user,
            api_key: Some(row.word("id")?),
            role,
            scopes: Some(row.document("scopes")?),
            name: row
                .maybe_text("email")?
                .map_or_else(|| row.text("name"), Ok)?,
        }))
    }
}

/// What [`Access::may_see`] says, as a condition on the rows of a table: the places are those of the
/// user, the key, and whether it manages the workspace.
pub(crate) fn seen(table: &str, user: &str, key: &str, manages: &str) -> String {
    format!(
        "({table}.user_id = {user} OR ({table}.user_id IS NULL \
         AND ({table}.api_key_id = {key} OR {manages} = 1)))"
    )
}

/// How exact the time of a key's last use is, in milliseconds.
const USE_IS_NOTED_EVERY_MS: i64 = 60_000;
