//! Asks the model for one turn: the stop ends it at once, and a conversation that is too long for
//! the model is made shorter once.

use std::sync::atomic::{AtomicUsize, Ordering};

use glovebox_protocol::thread::ReplyFailure;
use tokio::time::sleep_until;

use super::context::Context;
use super::voice::Voice;
use crate::chat::model::{Answer, ChatRequest, ModelEndpoint, ModelError, Said, Tool, ToolUse};
use crate::chat::turn::{Turn, TurnError};

/// A model and the turn that it is asked for.
pub(super) struct Session<'a> {
    turn: &'a Turn,
    endpoint: &'a ModelEndpoint,
    /// How much the model can read, where it has shown that it is less than was set.
    learned: AtomicUsize,
}

impl<'a> Session<'a> {
    pub(super) fn new(turn: &'a Turn, endpoint: &'a ModelEndpoint) -> Self {
        Self {
            turn,
            endpoint,
            learned: AtomicUsize::new(usize::MAX),
        }
    }

    pub(super) fn turn(&self) -> &'a Turn {
        self.turn
    }

    pub(super) fn endpoint(&self) -> &'a ModelEndpoint {
        self.endpoint
    }

    /// Asks the model, and gives the beginning of its answer.
    pub(super) async fn ask(
        &self,
        context: &mut Context,
        tools: &[Tool],
        tool_use: ToolUse,
    ) -> Result<Answer, TurnError> {
        context.fit(self.learned.load(Ordering::Relaxed));
        let mut is_shortened = false;
        loop {
            let request = ChatRequest {
                messages: context.messages(),
                tools,
                tool_use,
            };
            match self.endpoint.client.ask(self.endpoint, &request).await {
                Ok(answer) => return Ok(answer),
                // Tokens are only estimated, and a set size may be wrong.
                Err(error) if error.is_context() && !is_shortened => {
                    is_shortened = true;
                    self.learned.store(context.shrink(), Ordering::Relaxed);
                }
                Err(error) => return Err(failed(&error)),
            }
        }
    }

    /// Hears an answer to its end and lets people hear it as it comes. A stop drops it, and with it
    /// the connection.
    pub(super) async fn hear(
        &self,
        asked: impl Future<Output = Result<Answer, TurnError>>,
        voice: &mut Voice<'_>,
    ) -> Result<Said, TurnError> {
        let hearing = async {
            let mut answer = asked.await?;
            loop {
                let due = voice.due();
                tokio::select! {
                    biased;
                    () = async { sleep_until(due.unwrap_or_else(tokio::time::Instant::now)).await },
                        if due.is_some() => voice.flush().await?,
                    next = answer.next() => match next {
                        Ok(Some(text)) => voice.push(&text).await?,
                        Ok(None) => return Ok(answer.said()),
                        Err(error) => {
                            voice.flush_all().await?;
                            return Err(failed(&error));
                        }
                    },
                }
            }
        };
        self.unless_stopped(hearing).await
    }

    /// Hears an answer that only the assistant is told.
    pub(super) async fn overhear(
        &self,
        asked: impl Future<Output = Result<Answer, TurnError>>,
    ) -> Result<Said, TurnError> {
        let hearing = async {
            let mut answer = asked.await?;
            while answer
                .next()
                .await
                .map_err(|error| failed(&error))?
                .is_some()
            {}
            Ok(answer.said())
        };
        self.unless_stopped(hearing).await
    }

    async fn unless_stopped<T>(
        &self,
        doing: impl Future<Output = Result<T, TurnError>>,
    ) -> Result<T, TurnError> {
        tokio::select! {
            biased;
            () = self.turn.stopped() => Err(TurnError::Stopped),
            done = doing => done,
        }
    }
}

fn failed(error: &ModelError) -> TurnError {
    tracing::warn!(
        error = crate::failure::chain(error),
        code = error.code(),
        "a model gave no answer"
    );
    TurnError::Refused(ReplyFailure::new(
        error.code(),
        error.message(),
        error.fix(),
    ))
}
