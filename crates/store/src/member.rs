//! Who belongs to a workspace, and as what.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{UserId, WorkspaceId};

use crate::access::Permission;
use crate::database::{Columns as _, Store, Transaction, now_ms, statement, unique};
use crate::error::StoreError;
use crate::words::words;

words! {
    /// What a member of a workspace is.
    Role {
        /// Sees what is shared.
        Viewer = "viewer",
        /// Runs code and writes.
        Editor = "editor",
        /// Looks after members and keys too.
        Admin = "admin",
        /// The same, and cannot be removed while it is the last one.
        Owner = "owner",
    }
}

impl Role {
    /// Whether it may do something.
    #[must_use]
    pub fn may(self, permission: Permission) -> bool {
        let least = match permission {
            Permission::Read => Self::Viewer,
            Permission::Write | Permission::RunCode => Self::Editor,
            Permission::Manage => Self::Admin,
        };
        self >= least
    }
}

/// One member of a workspace.
#[derive(Debug, Clone)]
pub struct Member {
    /// Who.
    pub user_id: UserId,
    /// Its address.
    pub email: String,
    /// Its name.
    pub name: String,
    /// As what.
    pub role: Role,
    /// Since when.
    pub created_at: DateTime<Utc>,
}

impl Store {
    /// The members of a workspace, by name.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn members(&self, workspace: WorkspaceId) -> Result<Vec<Member>, StoreError> {
        let rows = sqlx::query(
            "SELECT memberships.user_id, memberships.role, memberships.created_at, \
             users.email, users.name FROM memberships \
             JOIN users ON users.id = memberships.user_id \
             WHERE memberships.workspace_id = $1 ORDER BY users.name, users.id",
        )
        .bind(workspace.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing members"))?;
        rows.iter()
            .map(|row| {
                Ok(Member {
                    user_id: row.word("user_id")?,
                    email: row.text("email")?,
                    name: row.text("name")?,
                    role: row.word("role")?,
                    created_at: row.time("created_at")?,
                })
            })
            .collect()
    }

    /// The workspaces that a user belongs to, with its role in each, by name.
    ///
    /// # Errors
    /// When the database does not answer.
    pub async fn memberships_of(
        &self,
        user: UserId,
    ) -> Result<Vec<(WorkspaceId, String, Role)>, StoreError> {
        let rows = sqlx::query(
            "SELECT workspaces.id, workspaces.name, memberships.role FROM memberships \
             JOIN workspaces ON workspaces.id = memberships.workspace_id \
             WHERE memberships.user_id = $1 ORDER BY workspaces.name",
        )
        .bind(user.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(statement("listing memberships"))?;
        rows.iter()
            .map(|row| Ok((row.word("id")?, row.text("name")?, row.word("role")?)))
            .collect()
    }
}

impl Transaction {
    /// Makes a user a member of a workspace.
    ///
    /// # Errors
    /// When it is one already.
    pub async fn add_member(
        &mut self,
        workspace: WorkspaceId,
        user: UserId,
        role: Role,
    ) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO memberships (workspace_id, user_id, role, created_at) \
             VALUES ($1, $2, $3, $4)",
        )
        .bind(workspace.to_string())
        .bind(user.to_string())
        .bind(role.as_str())
        .bind(now_ms())
        .execute(&mut *self.inner)
        .await
        .map_err(unique("adding a member", "that membership"))?;
        Ok(())
    }

    /// What a user is in a workspace, as these changes see it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn role_of(
        &mut self,
        workspace: WorkspaceId,
        user: UserId,
    ) -> Result<Option<Role>, StoreError> {
        let row =
            sqlx::query("SELECT role FROM memberships WHERE workspace_id = $1 AND user_id = $2")
                .bind(workspace.to_string())
                .bind(user.to_string())
                .fetch_optional(&mut *self.inner)
                .await
                .map_err(statement("looking for a membership"))?;
        row.map(|row| row.word("role")).transpose()
    }

    /// How many owners a workspace has, as these changes see it.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn count_owners(&mut self, workspace: WorkspaceId) -> Result<i64, StoreError> {
        sqlx::query(
            "SELECT COUNT(*) AS n FROM memberships WHERE workspace_id = $1 AND role = 'owner'",
        )
        .bind(workspace.to_string())
        .fetch_one(&mut *self.inner)
        .await
        .map_err(statement("counting owners"))?
        .number("n")
    }

    /// Gives a member another role.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn set_role(
        &mut self,
        workspace: WorkspaceId,
        user: UserId,
        role: Role,
    ) -> Result<(), StoreError> {
        sqlx::query("UPDATE memberships SET role = $3 WHERE workspace_id = $1 AND user_id = $2")
            .bind(workspace.to_string())
            .bind(user.to_string())
            .bind(role.as_str())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("changing a role"))?;
        Ok(())
    }

    /// Takes a member out of a workspace.
    ///
    /// # Errors
    /// When the statement fails.
    pub async fn remove_member(
        &mut self,
        workspace: WorkspaceId,
        user: UserId,
    ) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM memberships WHERE workspace_id = $1 AND user_id = $2")
            .bind(workspace.to_string())
            .bind(user.to_string())
            .execute(&mut *self.inner)
            .await
            .map_err(statement("removing a member"))?;
        Ok(())
    }
}
