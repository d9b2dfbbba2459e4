//! The end of what somebody runs who may not run it any more: asked for in the transaction that takes
//! the right away, carried out after it.

use glovebox_protocol::ids::{UserId, WorkspaceId};
use glovebox_store::{Revoked, StoreError, Transaction};

use super::sandboxes::is_unknown;
use super::{App, to_its_end};
use crate::failure::chain;

/// What people are told whose code was in such a sandbox.
const DETAIL: &str = "whoever it belongs to may not run code here any more";

impl App {
    /// Takes away what somebody runs, in one workspace or everywhere, with what else `changes` hold.
    /// Returns when it is kept, and all who drive what runs here are told; sandboxes that a gateway
    /// does not take away now, the worker does.
    ///
    /// # Errors
    /// When a statement fails; then nothing is changed.
    pub(crate) async fn commit_and_end_work(
        &self,
        mut changes: Transaction,
        user: UserId,
        workspace: Option<WorkspaceId>,
    ) -> Result<(), StoreError> {
        let revoked = changes.end_work_of(user, workspace, DETAIL).await?;
        let app = self.clone();
        to_its_end(async move {
            changes.commit().await?;
            app.end_revoked(revoked).await;
            Ok(())
        })
        .await
    }

    async fn end_revoked(&self, revoked: Revoked) {
        // Replies first: what they wait for goes away under them, and they are not to say that they
        // failed.
        for reply in revoked.replies {
            self.live().stop(reply);
        }
        for sandbox in revoked.sandboxes {
            match self.gateway().delete(sandbox).await {
                Ok(_) => {}
                Err(error) if is_unknown(&error) => {}
                Err(error) => {
                    tracing::warn!(%sandbox, error = chain(&error), "ending a sandbox of somebody who may not run code any more; it is tried again");
                }
            }
        }
    }
}
