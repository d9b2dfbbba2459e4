//! Driving a reply from its start to its end, whatever comes in between.

use std::sync::Arc;
use std::time::Duration;

use glovebox_protocol::ids::MessageId;
use glovebox_protocol::thread::{ReplyFailure, ReplyOutcome};
use glovebox_store::{Access, Message, StoreError, Thread};
use tokio::time::{Instant, MissedTickBehavior};

use super::failure;
use super::live::Driven;
use super::turn::{Turn, TurnError};
use crate::app::App;
use crate::failure::chain;
use crate::worker::DRIVEN_SECONDS;

/// How often it is looked whether another server was asked for a reply's end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How many looks lie between two signs that somebody drives a reply.
const LOOKS_PER_SIGN: u32 = 20;

/// How long a reply may take to end after it was asked to: code is interrupted, then killed, then
/// loses its sandbox before this is over.
const STOP_PATIENCE: Duration = Duration::from_secs(90);

/// How long it is waited before it is tried again to keep how a reply ended.
const END_AGAIN: Duration = Duration::from_secs(1);

impl App {
    /// Drives a reply that was placed. It goes on when this returns.
    pub(crate) fn drive_reply(
        &self,
        access: Access,
        thread: Thread,
        question: Message,
        reply: Message,
    ) {
        let driven = self.live().drive(reply.id);
        let turn = Turn::new(
            self.clone(),
            access,
            thread,
            (question, reply),
            driven.stop(),
        );
        tokio::spawn(drive(self.clone(), Arc::new(turn), driven));
    }
}

async fn drive(app: App, turn: Arc<Turn>, driven: Driven) {
    let reply = turn.reply();
    let Some(_at_work) = app.stopping().begin() else {
        keep_end(&turn, ReplyOutcome::Failed, Some(failure::server_stops())).await;
        return;
    };
    let answering = Arc::clone(&turn);
    // A task of its own: should it panic, the reply ends all the same.
    let mut answering = tokio::spawn(async move { super::answer(&answering).await });
    let answered = tokio::select! {
        answered = &mut answering => answered.map_err(|error| chain(&error)),
        () = keep_watch(&app, reply) => Err("keeping watch ended".into()),
        () = patience_is_over(&driven) => Err("it did not end when it was asked to".into()),
        () = server_stops(&app) => Ok(Err(TurnError::Refused(failure::server_stops()))),
    };
    answering.abort();
    let (outcome, error) = match answered {
        Ok(Ok(())) => (ReplyOutcome::Done, None),
        Ok(Err(TurnError::Stopped)) => (ReplyOutcome::Stopped, None),
        // Its code was ended from here: that the server stops says more than what became of it.
        Ok(Err(TurnError::Refused(_))) if app.stopping().is_ending() => {
            (ReplyOutcome::Failed, Some(failure::server_stops()))
        }
        Ok(Err(TurnError::Refused(failure))) => (ReplyOutcome::Failed, Some(failure)),
        Ok(Err(TurnError::Store(error))) => {
            tracing::error!(%reply, error = chain(&error), "a reply could not go on");
            (ReplyOutcome::Failed, Some(failure::of_store(&error)))
        }
        Err(error) => {
            tracing::error!(%reply, error, "a reply was given up");
            (ReplyOutcome::Failed, Some(given_up()))
        }
    };
    keep_end(&turn, outcome, error).await;
}

/// Keeps how a reply ended, as soon as that can be kept: while the disk is full nothing can, and to
/// whoever looks the reply goes on.
async fn keep_end(turn: &Turn, outcome: ReplyOutcome, failure: Option<ReplyFailure>) {
    let mut is_told = false;
    while let Err(error) = turn.end(outcome, failure.clone()).await {
        if !is_told {
            let (reply, error) = (turn.reply(), chain(&error));
            tracing::error!(%reply, error, "a reply's end is not kept, and is tried again");
            is_told = true;
        }
        tokio::time::sleep_until(Instant::now() + END_AGAIN).await;
    }
}

fn given_up() -> ReplyFailure {
    ReplyFailure::new(
        "internal",
        "the server could not go on with this reply",
        "try again; an administrator finds the reason in the server's log",
    )
}

/// Shows that the reply is driven, and notices when another server was asked for its end. Never
/// returns.
async fn keep_watch(app: &App, reply: MessageId) {
    let mut looks = tokio::time::interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut look = 0;
    loop {
        looks.tick().await;
        if let Err(error) = watch_once(app, reply, look % LOOKS_PER_SIGN == 0).await {
            tracing::warn!(%reply, error = chain(&error), "keeping watch over a reply");
        }
        look += 1;
    }
}

async fn watch_once(app: &App, reply: MessageId, gives_sign: bool) -> Result<(), StoreError> {
    if gives_sign {
        app.store().mark_reply_driven(reply, DRIVEN_SECONDS).await?;
    }
    if !app.store().is_to_go_on(reply).await? {
        app.live().stop(reply);
    }
    Ok(())
}

/// Resolves when the server stops and what ran in sandboxes has ended: replies that waited for it
/// have had a moment to end by themselves.
async fn server_stops(app: &App) {
    app.stopping().until_ending().await;
    loop {
        let has_ended = app.running().ids().is_empty();
        tokio::time::sleep_until(Instant::now() + LOOK_EVERY).await;
        if has_ended {
            return;
        }
    }
}

/// Resolves some time after the reply's end was asked for.
async fn patience_is_over(driven: &Driven) {
    let mut stop = driven.stop();
    // Who drives holds the sender.
    let _ = stop.wait_for(|asked| *asked).await;
    tokio::time::sleep_until(Instant::now() + STOP_PATIENCE).await;
}
