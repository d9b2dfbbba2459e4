//! What somebody runs, ended together with the right to run it.

use glovebox_protocol::ids::{MessageId, SandboxId, UserId, WorkspaceId};

use crate::database::{Columns as _, Transaction, now_ms, statement};
use crate::error::StoreError;
use crate::lease::EndedWhy;

/// What ran for somebody who may not run code any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    /// Replies whose end is asked for.
    pub replies: Vec<MessageId>,
    /// Sandboxes whose leases have ended: they are still to be taken away.
    pub sandboxes: Vec<SandboxId>,
}

impl Transaction {
    /// Asks for the end of all replies to somebody and ends the leases of all their sandboxes, in one
    /// workspace or everywhere.
    ///
    /// # Errors
    /// When a statement fails.
    pub async fn end_work_of(
        &mut self,
        user: UserId,
        workspace: Option<WorkspaceId>,
        detail: &str,
    ) -> Result<Revoked, StoreError> {
        let place = workspace.map_or_else(String::new, |id| id.to_string());
        let replies = sqlx::query(
            "UPDATE messages SET stop_asked_at = COALESCE(stop_asked_at, $2) \
             WHERE state = 'running' AND user_id = $1 AND ($3 = '' OR thread_id IN \
             (SELECT id FROM threads WHERE workspace_id = $3)) RETURNING id",
        )
        .bind(user.to_string())
        .bind(now_ms())
        .bind(place.clone())
        .fetch_all(&mut *self.inner)
        .await
        .map_err(statement("asking for the end of somebody's replies"))?;
        let sandboxes = sqlx::query(
            "UPDATE leases SET state = 'ended', ended_at = $2, ended_why = $4, \
             ended_detail = $5 WHERE state <> 'ended' AND purpose = 'code' AND user_id = $1 \
             AND ($3 = '' OR workspace_id = $3) RETURNING id",
        )
        .bind(user.to_string())
        .bind(now_ms())
        .bind(place)
        .bind(EndedWhy::Admin.as_str())
        .bind(detail)
        .fetch_all(&mut *self.inner)
        .await
        .map_err(statement("ending somebody's leases"))?;
        Ok(Revoked {
            replies: replies
                .iter()
                .map(|row| row.word("id"))
                .collect::<Result<_, _>>()?,
            sandboxes: sandboxes
                .iter()
                .map(|row| row.word("id"))
                .collect::<Result<_, _>>()?,
        })
    }
}
