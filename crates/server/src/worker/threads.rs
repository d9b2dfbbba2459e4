//! What is left behind by chat: replies whose server is gone, files that were never sent, threads
//! that were deleted.

use chrono::{TimeDelta, Utc};
use glovebox_protocol::thread::ReplyOutcome;
use glovebox_store::StoreError;

use crate::app::App;
use crate::chat::failure::server_ended;
use crate::failure::chain;

/// After how many hours a file that was uploaded and not sent is thrown away, and a deleted thread
/// for good: the bytes of its artifacts count for the day on which they were saved.
const KEPT_HOURS: i64 = 24;

/// Looks through what chat has left behind. What cannot be ended or taken away is told in the log and
/// tried again the next time, and keeps nothing else from it.
pub(super) async fn sweep(app: &App) -> Result<(), StoreError> {
    end_undriven(app).await?;
    let before = Utc::now() - TimeDelta::hours(KEPT_HOURS);
    app.throw_away_unsent(before).await?;
    app.purge_threads(before).await
}

/// Ends replies whose server is gone.
async fn end_undriven(app: &App) -> Result<(), StoreError> {
    for reply in app.store().undriven_replies().await? {
        // Where the disk was full, this very process could not say that it drives it.
        if app.live().is_driven(reply.id) {
            continue;
        }
        let failure = server_ended();
        // How many steps there were stands in the events.
        let ended = app
            .store()
            .end_reply(&reply, ReplyOutcome::Failed, Some(failure), 0)
            .await;
        match ended {
            Ok(Some(seq)) => {
                app.live().told(reply.thread_id, seq);
                app.metrics().reply_abandoned();
                tracing::warn!(reply = %reply.id, "a reply that nobody drove was ended");
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(reply = %reply.id, error = chain(&error), "ending a reply that nobody drives");
            }
        }
    }
    Ok(())
}
