//! Chat: what answers a message.
//!
//! `turn` is what a reply can do, and its only way to a thread, its sandbox and its files.
//! `assistant` answers words with it, and `model` asks the endpoint that the assistant thinks
//! with. `drive` sees to it that each reply comes to an end.

mod assistant;
pub(crate) mod drive;
pub(crate) mod failure;
pub(crate) mod live;
pub mod model;
mod past;
mod report;
mod sandbox;
mod stage;
mod step;
pub(crate) mod turn;

use glovebox_protocol::thread::{MessageKind, ReplyFailure};
use glovebox_store::StoreError;
use serde_json::Value;
use tokio::time::Instant;

use crate::app::App;
use crate::app::models::ModelAdminError;
use model::ModelEndpoint;
use turn::{Turn, TurnError};

/// The name of the model that answers words, where there is one.
///
/// # Errors
/// When the store does not answer.
pub(crate) async fn model_name(app: &App) -> Result<Option<String>, StoreError> {
    let model = app.store().default_model().await?;
    Ok(model.map(|model| model.settings.name))
}

/// Answers words, within the time that a reply of the model may take. What was said until then is
/// kept, and code is ended as by a stop.
async fn in_time(turn: &Turn, model: &ModelEndpoint) -> Result<(), TurnError> {
    let over = Instant::now() + model.reply_timeout;
    let mut replying = std::pin::pin!(assistant::reply(turn, model));
    let replied = tokio::select! {
        replied = &mut replying => replied,
        () = tokio::time::sleep_until(over) => {
            turn.run_out(model.reply_timeout);
            replying.await
        }
    };
    match (replied, turn.ran_out()) {
        (Err(TurnError::Stopped), Some(limit)) => {
            Err(TurnError::Refused(failure::out_of_time(limit)))
        }
        (replied, _) => replied,
    }
}

/// Answers a message: code is run as it is, words are for the model.
async fn answer(turn: &Turn) -> Result<(), TurnError> {
    match turn.question().kind {
        MessageKind::Code => {
            let report = turn.run_python(&turn.question().body).await?;
            turn.keep_turns(&Value::Null, &report.in_words()).await?;
            Ok(())
        }
        MessageKind::Text => match turn.model().await {
            Ok(Some(model)) => in_time(turn, &model).await,
            Ok(None) => Err(TurnError::Refused(ReplyFailure::new(
                "no_model",
                "no model is set that could answer words",
                "type Python with Run code, or ask a system admin to add a model at Admin → \
                 System → Models",
            ))),
            Err(ModelAdminError::Store(error)) => Err(TurnError::Store(error)),
            Err(error) => Err(TurnError::Refused(ReplyFailure::new(
                "model_address",
                error.to_string(),
                "a system admin looks at the model's address at Admin → System → Models",
            ))),
        },
    }
}
