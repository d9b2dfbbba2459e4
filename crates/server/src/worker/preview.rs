//! Makes previews: one task is one file, made to its end or given up for a reason that is kept.
//!
//! A worker that is killed leaves its task, which another one takes when its time is over, ends the
//! sandbox that was left and begins anew; after some attempts it is given up. An attempt is one for which
//! there was a sandbox: while none can be made, a preview waits and goes on by itself. A file that cannot be
//! read is tried as often.

mod in_hand;
mod making;
mod sandbox;
mod source;

use std::ops::ControlFlow;

use chrono::{DateTime, TimeDelta, Utc};
use glovebox_protocol::ids::PreviewId;
use glovebox_store::{Preview, PreviewState, StoreError, Task};
use tokio::time::Instant;

use crate::app::App;
use crate::app::previews::contents::Contents;
use crate::app::previews::format::{Format, Way};
use crate::app::previews::inert::inert;
use crate::app::previews::text::{self, SHOWN_BYTES};
use crate::app::previews::{FORGET, MAX_FILE_BYTES, contents::TextMedia, is_wanted};
use crate::failure::{NO_ROOM, chain};
use crate::worker::{Queue, TAKEN};
use making::Making;

use in_hand::Hand;
pub(crate) use in_hand::{InHand, give_back};

/// How often a preview is begun before it is given up.
const ATTEMPTS: i64 = 3;

/// How long after a failure that is none of the file's it is tried again, at first and at most, in seconds.
/// Each further time it takes so much longer: there may be no room for days.
const AGAIN_AFTER: i64 = 2;
const AGAIN_AT_LATEST: i64 = 60;

/// What people are told where the object store does not give the whole file.
const UNREAD: &str = "the stored file cannot be read just now";

/// How often previews are looked for that nobody can see any more.
const FORGET_EVERY: TimeDelta = TimeDelta::minutes(10);

/// Why a preview is not made.
#[derive(Debug)]
enum Stopped {
    /// The file has none, for a reason that stays.
    File(Contents),
    /// It could not be made just now.
    Now {
        /// What people are told.
        message: String,
        /// What to do.
        fix: Option<String>,
        /// Whether there is any point in trying again by oneself.
        again: bool,
    },
    /// There is no sandbox for it: it waits until there is one.
    Waits {
        /// What people are told.
        message: String,
    },
    /// The object store did not give the whole file.
    Unread,
    /// The database failed, or what was made cannot be kept: the task is left as it is.
    Store(StoreError),
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Sees to it that there is the task to take old previews away: it is put off, never finished.
pub(super) async fn ensure_forgetting(app: &App) -> Result<(), StoreError> {
    let mut changes = app.store().begin().await?;
    let queue = Queue::Preview.name();
    changes
        .enqueue(queue, FORGET, "all", &serde_json::json!({}), Utc::now())
        .await?;
    changes.commit().await
}

/// Does one task.
///
/// # Errors
/// When the store fails; the task is then taken again.
pub(super) async fn make(app: &App, task: &Task) -> Result<(), StoreError> {
    if task.kind == FORGET {
        app.forget_previews().await?;
        return app
            .store()
            .repeat_task(task.id, Utc::now() + FORGET_EVERY)
            .await;
    }
    let preview = match task.subject.parse::<PreviewId>() {
        Ok(id) => app.store().preview(id).await?,
        Err(_) => None,
    };
    let Some(preview) = preview.filter(is_wanted) else {
        return app.store().finish_task(task.id).await;
    };
    end_what_was_left(app, &preview).await;
    if attempts(&preview, task) >= ATTEMPTS {
        let contents = Contents::failed_for_now(
            "making it was broken off several times",
            Some("try again; if it goes on, a system admin looks into the server's log".into()),
        );
        return finish(app, task, &preview, PreviewState::Failed, &contents).await;
    }
    let hand = app.in_hand().begin(&preview, task);
    let made = tokio::select! {
        made = one(app, &preview, hand) => Some(made),
        // Somebody else makes it now.
        () = until_lost(app, hand, task) => None,
    };
    let settled = match made {
        Some(made) => settle(app, task, preview, made).await,
        None => Ok(()),
    };
    // Not before: whoever is told to stop in between gives it back.
    app.in_hand().end(hand);
    settled
}

/// Keeps what came of a try, and whether there is to be another one.
async fn settle(
    app: &App,
    task: &Task,
    preview: Preview,
    made: Result<Contents, Stopped>,
) -> Result<(), StoreError> {
    // How many sandboxes there were, this one included.
    let preview = app.store().preview(preview.id).await?.unwrap_or(preview);
    let tried = Contents::of(&preview).tried();
    match made {
        Ok(contents) => finish(app, task, &preview, PreviewState::Ready, &contents).await,
        Err(Stopped::File(contents)) => {
            finish(app, task, &preview, PreviewState::Failed, &contents).await
        }
        Err(Stopped::Waits { message }) => put_off(app, task, &preview, tried, &message).await,
        Err(Stopped::Unread) => match unread(tried) {
            ControlFlow::Continue(tried) => put_off(app, task, &preview, tried, UNREAD).await,
            ControlFlow::Break(contents) => {
                finish(app, task, &preview, PreviewState::Failed, &contents).await
            }
        },
        Err(Stopped::Now {
            message,
            again: true,
            ..
        }) if tried.begun < ATTEMPTS => {
            tracing::warn!(preview = %preview.id, message, "a preview could not be made");
            put_off(app, task, &preview, tried, &message).await
        }
        Err(Stopped::Now { message, fix, .. }) => {
            let contents = Contents::failed_for_now(message, fix);
            finish(app, task, &preview, PreviewState::Failed, &contents).await
        }
        Err(Stopped::Store(error)) => Err(error),
    }
}

/// Counts that a file could not be read: how often it was tried then, or what is kept where that is enough.
fn unread(tried: Contents) -> ControlFlow<Contents, Contents> {
    let unread = tried.unread + 1;
    if unread < ATTEMPTS {
        return ControlFlow::Continue(Contents { unread, ..tried });
    }
    let fix = "try again in a moment; a system admin sees the reason in the server's log, and checks the \
               disk of the object store";
    ControlFlow::Break(Contents::failed_for_now(UNREAD, Some(fix.into())))
}

/// How often it was begun and not brought to an end. What is made in a sandbox counts its sandboxes; what
/// is read here has nothing to wait for.
fn attempts(preview: &Preview, task: &Task) -> i64 {
    match Format::of_word(&preview.format).way() {
        Way::Sandbox => Contents::of(preview).begun,
        Way::Text | Way::Nothing => task.attempts - 1,
    }
}

/// Lets a preview wait, and says why.
async fn put_off(
    app: &App,
    task: &Task,
    preview: &Preview,
    tried: Contents,
    message: &str,
) -> Result<(), StoreError> {
    let document = serde_json::to_value(tried).unwrap_or_default();
    app.store()
        .note_preview(preview.id, PreviewState::Waiting, &document)
        .await?;
    app.store()
        .retry_task(task.id, again_at(task.attempts), message)
        .await
}

/// When a task is tried again that was taken so often.
fn again_at(taken: i64) -> DateTime<Utc> {
    let seconds = taken.saturating_mul(AGAIN_AFTER);
    Utc::now() + TimeDelta::seconds(seconds.clamp(AGAIN_AFTER, AGAIN_AT_LATEST))
}

/// First what came of it, then that nothing is left to do. Of one that has failed nobody sees a part.
async fn finish(
    app: &App,
    task: &Task,
    preview: &Preview,
    state: PreviewState,
    contents: &Contents,
) -> Result<(), StoreError> {
    let document = serde_json::to_value(contents).unwrap_or_default();
    app.store()
        .note_preview(preview.id, state, &document)
        .await?;
    if state == PreviewState::Failed {
        app.forget_parts(preview.id).await?;
    }
    app.metrics().preview_made(state == PreviewState::Ready);
    app.store().finish_task(task.id).await
}

/// Ends the sandbox of a worker that did not get done.
async fn end_what_was_left(app: &App, preview: &Preview) {
    let Some(sandbox) = Contents::of(preview).sandbox else {
        return;
    };
    let detail = "the worker that used it was ended";
    sandbox::end(app, sandbox, detail).await;
}

/// For how long a task is one worker's.
fn milliseconds() -> i64 {
    i64::try_from(TAKEN.as_millis()).unwrap_or(i64::MAX)
}

/// Holds on to a task and to the sandbox that it is done in; returns when it is somebody else's.
async fn until_lost(app: &App, hand: Hand, task: &Task) {
    loop {
        tokio::time::sleep_until(Instant::now() + TAKEN / 3).await;
        match app.store().hold_task(task, milliseconds()).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => tracing::warn!(error = chain(&error), "holding a task"),
        }
        if let Some(sandbox) = app.in_hand().sandbox(hand)
            && let Err(error) = app.store().touch_lease(sandbox).await
        {
            tracing::warn!(error = chain(&error), "holding the sandbox of a preview");
        }
    }
}

async fn one(app: &App, preview: &Preview, hand: Hand) -> Result<Contents, Stopped> {
    if preview.bytes > MAX_FILE_BYTES {
        let contents = Contents::failed(
            format!(
                "the file has {} MB, more than a preview reads",
                preview.bytes / 1_000_000
            ),
            Some("download it".into()),
        );
        return Err(Stopped::File(contents));
    }
    let format = Format::of_word(&preview.format);
    match format.way() {
        Way::Nothing => Err(Stopped::File(Contents::failed(
            "there is no preview of this type of file",
            Some("download it".into()),
        ))),
        Way::Text => of_text(app, preview, format).await,
        Way::Sandbox => Making::new(app, preview, hand, format).run().await,
    }
}

/// A preview of what is text: read and kept here.
async fn of_text(app: &App, preview: &Preview, format: Format) -> Result<Contents, Stopped> {
    let limit = match format.word() {
        "html" => text::MAX_HTML_BYTES,
        _ => SHOWN_BYTES as u64,
    };
    let bytes = source::read_source(app, preview, limit).await?;
    let is_cut = preview.bytes > limit;
    let Some(read) = text::decode(&bytes, is_cut) else {
        return Err(Stopped::File(Contents::failed(
            "it is no text: there are NUL bytes in it",
            Some("download it".into()),
        )));
    };
    if format.word() == "html" {
        if is_cut {
            let message = "the page is larger than a preview shows";
            let contents = Contents::failed(message, Some("download it".into()));
            return Err(Stopped::File(contents));
        }
        let page = inert(&read);
        keep_part(app, preview, "html", "text/html", page.as_bytes()).await?;
        keep_part(app, preview, "text", "text/plain", read.as_bytes()).await?;
        return Ok(of(TextMedia::Html, None));
    }
    let cut = is_cut.then(|| format!("the first {} MB are shown", SHOWN_BYTES / 1_000_000));
    let (media, shown) = match format.word() {
        "json" if !is_cut => match text::laid_out(&read) {
            Some(shown) => (TextMedia::Json, shown),
            None => (TextMedia::Text, read),
        },
        "markdown" => {
            // Of half a text, half a table may be left: better than nothing.
            let html = text::markdown(&read);
            let document = serde_json::json!({ "html": html }).to_string();
            let media_type = "application/json";
            keep_part(app, preview, "markdown", media_type, document.as_bytes()).await?;
            (TextMedia::Markdown, read)
        }
        _ => (TextMedia::Text, read),
    };
    keep_part(app, preview, "text", "text/plain", shown.as_bytes()).await?;
    Ok(of(media, cut))
}

/// Keeps a part, where the disk has room for it beside what the server needs for itself.
async fn keep_part(
    app: &App,
    preview: &Preview,
    name: &str,
    media_type: &str,
    bytes: &[u8],
) -> Result<(), Stopped> {
    if !app.has_room_for(bytes.len() as u64) {
        return Err(Stopped::Now {
            message: NO_ROOM.into(),
            fix: Some("ask a system admin to make room, and try again then".into()),
            again: false,
        });
    }
    app.keep_part(preview.id, name, media_type, bytes).await?;
    Ok(())
}

fn of(media: TextMedia, cut: Option<String>) -> Contents {
    Contents {
        text_media: Some(media),
        cut,
        ..Contents::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_read_is_given_up_like_anything_else() {
        let tried = Contents {
            begun: 1,
            ..Contents::default()
        };
        let once = unread(tried).continue_value().unwrap();
        assert_eq!((once.begun, once.unread), (1, 1));
        let twice = unread(once).continue_value().unwrap();
        let given_up = unread(twice).break_value().unwrap();
        assert_eq!(given_up.message.as_deref(), Some(UNREAD));
        assert!(given_up.may_pass && given_up.fix.is_some());
    }

    #[test]
    fn a_preview_that_waits_for_long_is_tried_more_and_more_seldom() {
        let now = Utc::now();
        let after = |taken| (again_at(taken) - now).num_seconds();
        assert_eq!([1, 3, 30, i64::MAX].map(after), [2, 6, 60, 60]);
    }
}
