//! Chat: what answers a message.
//!
//! [`turn`] is what a reply can do, and its only way to a thread, its sandbox and its files.
//! [`drive`] sees to it that each reply comes to an end.

mod drive;
mod failure;
pub(crate) mod live;
mod past;
mod report;
mod sandbox;
mod stage;
mod step;
pub(crate) mod turn;

use glovebox_protocol::thread::{MessageKind, ReplyFailure};
use glovebox_store::StoreError;
use serde_json::Value;

use crate::app::App;
use turn::{Turn, TurnError};

/// The name of the model that answers words, where there is one.
///
/// # Errors
/// When the store does not answer.
#[expect(
    clippy::unused_async,
    reason = "which model there is will stand in the database"
)]
pub(crate) async fn model_name(_app: &App) -> Result<Option<String>, StoreError> {
    Ok(None)
}

/// Answers a message: code is run as it is, words are for the model.
async fn answer(turn: &Turn) -> Result<(), TurnError> {
    match turn.question().kind {
        MessageKind::Code => {
            let report = turn.run_python(&turn.question().body).await?;
            turn.keep_turns(&Value::Null, &report.in_words()).await?;
            Ok(())
        }
        MessageKind::Text => Err(TurnError::Refused(ReplyFailure::new(
            "no_model",
            "no model is set that could answer words",
            "type Python with Run code, or ask a system admin to add a model at Admin → System → \
             Models",
        ))),
    }
}
