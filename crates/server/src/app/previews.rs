//! Previews: what a file looks like, for people who would rather look than download.
//!
//! Asking puts a task into a queue; a worker does it (`worker/preview`), in a throwaway sandbox
//! wherever a format is more than text. What is made is kept for the workspace and the bytes.

pub(crate) mod check;
pub(crate) mod contents;
pub(crate) mod format;
pub(crate) mod inert;
pub(crate) mod scripts;
pub(crate) mod text;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use futures_util::stream::BoxStream;
use glovebox_protocol::ids::PreviewId;
use glovebox_store::{
    Access, NewPreview, NewTask, ObjectKey, Preview, PreviewPart, PreviewSource, PreviewState,
    StoreError, TaskStanding,
};
use serde_json::json;

use super::App;
use super::batches::Batches;
use crate::failure::chain;
use crate::worker::{Queue, TEXT_PREVIEWS};
use contents::Contents;
use format::{Format, Way};

/// The number of what makes previews: raised when it makes better ones, which are then made anew.
pub(crate) const RENDERER: i64 = 3;

/// The kind of task that makes one.
pub(crate) const MAKE: &str = "make";

/// The kind of the one task that takes those away that nobody can see any more.
pub(crate) const FORGET: &str = "forget";

/// How long a failure that may pass stands before asking again tries again, in seconds.
const RETRY_AFTER_SECONDS: i64 = 5;

/// After how long a preview that nobody has begun is one that no worker sees, in seconds: an idle
/// worker looks every second.
const UNATTENDED_SECONDS: i64 = 5;

/// The largest file that is looked into, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 100 << 20;

/// Why a preview waits, where it does for long enough that somebody asks.
fn waits(standing: &TaskStanding) -> Contents {
    let (message, fix) = if standing.is_taken {
        (None, None)
    } else if let Some(error) = &standing.last_error {
        let again = "it is tried again by itself in a moment";
        (Some(error.clone()), Some(again.to_owned()))
    } else if standing.others_are_taken {
        let message = "other files are seen to first; workspaces take turns";
        (Some(message.to_owned()), None)
    } else if Utc::now() - standing.due_at > TimeDelta::seconds(UNATTENDED_SECONDS) {
        let message = "no worker makes previews just now";
        let fix = "ask a system admin to start one: `glovebox worker`, or a server, with the queue \
                   `preview`";
        (Some(message.to_owned()), Some(fix.to_owned()))
    } else {
        (None, None)
    };
    Contents {
        message,
        fix,
        ..Contents::default()
    }
}

/// Whether a preview is still to be made, or to be made to its end.
pub(crate) const fn is_wanted(preview: &Preview) -> bool {
    matches!(preview.state, PreviewState::Waiting | PreviewState::Making)
}

/// Whether a preview that there is has to be asked for once more: it has failed for a reason that may
/// have passed, nobody has it to do, or it waits and another file is asked about, as the one that it
/// was to be made of may be gone by then.
fn is_to_be_asked_for(
    placed: &Preview,
    source: PreviewSource,
    standing: Option<&TaskStanding>,
) -> bool {
    match placed.state {
        PreviewState::Ready => false,
        PreviewState::Failed => is_worth_another_try(placed),
        PreviewState::Making => standing.is_none(),
        PreviewState::Waiting => standing.is_none() || placed.source != source,
    }
}

/// Whether a preview that has failed may come out otherwise now.
fn is_worth_another_try(failed: &Preview) -> bool {
    let is_old = failed
        .made_at
        .is_some_and(|at| Utc::now() - at > TimeDelta::seconds(RETRY_AFTER_SECONDS));
    is_old && Contents::of(failed).may_pass
}

impl App {
    /// What a file looks like, as far as it is known. Asks for it where nobody has.
    ///
    /// Nothing where there is no such file, or whoever asks may not read it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn preview_of(
        &self,
        access: &Access,
        source: PreviewSource,
    ) -> Result<Option<Preview>, StoreError> {
        let Some(file) = self.store().previewable(access, source).await? else {
            return Ok(None);
        };
        let format = Format::of(&file.name, &file.media_type);
        // What is only read does not wait behind what is made in sandboxes, which may take minutes.
        let is_text = format.way() != Way::Sandbox;
        let queue = if is_text {
            TEXT_PREVIEWS
        } else {
            Queue::Preview.name()
        };
        let new = NewPreview {
            workspace_id: access.workspace(),
            file: &file,
            format: format.word(),
            renderer: RENDERER,
        };
        // Pages that show it ask each second: nothing is written where nothing is to be done.
        let placed = self.store().placed_preview(&new).await?;
        let standing = match &placed {
            Some(placed) if is_wanted(placed) => {
                let subject = placed.id.to_string();
                self.store().task_standing(queue, MAKE, &subject).await?
            }
            _ => None,
        };
        let mut preview = match placed {
            Some(placed) if !is_to_be_asked_for(&placed, file.source, standing.as_ref()) => placed,
            _ => self.ask_for_preview(&new, queue).await?,
        };
        if preview.state == PreviewState::Waiting {
            // One that was asked for just now has nothing to say yet.
            let why = standing.map_or_else(Contents::default, |standing| waits(&standing));
            preview.contents = serde_json::to_value(why).unwrap_or_default();
        }
        Ok(Some(preview))
    }

    async fn ask_for_preview(
        &self,
        new: &NewPreview<'_>,
        queue: &'static str,
    ) -> Result<Preview, StoreError> {
        let mut changes = self.store().begin().await?;
        let mut preview = changes.place_preview(new).await?;
        if preview.state == PreviewState::Failed && is_worth_another_try(&preview) {
            changes.restart_preview(preview.id).await?;
            preview.state = PreviewState::Waiting;
            preview.contents = json!({});
        }
        let is_wanted = is_wanted(&preview);
        if is_wanted {
            let subject = preview.id.to_string();
            let new = NewTask {
                queue,
                kind: MAKE,
                subject: &subject,
                // Workspaces take turns: nobody waits until all files of another one are seen.
                share: &preview.workspace_id.to_string(),
                payload: &json!({}),
                due: Utc::now(),
            };
            changes.enqueue_new(&new).await?;
        }
        changes.commit().await?;
        if is_wanted {
            self.preview_wanted(queue == TEXT_PREVIEWS).notify_one();
        }
        Ok(preview)
    }

    /// A part of a preview with its bytes, if whoever asks may read a file that it shows.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn preview_part(
        &self,
        access: &Access,
        id: PreviewId,
        name: &str,
    ) -> Result<Option<(PreviewPart, BoxStream<'static, Result<Bytes, StoreError>>)>, StoreError>
    {
        if self.store().preview_of(access, id).await?.is_none() {
            return Ok(None);
        }
        let Some(part) = self.store().preview_part(id, name).await? else {
            return Ok(None);
        };
        let key = ObjectKey::PreviewPart(id, part.name.clone());
        let bytes = self.objects().read(key).await?;
        Ok(Some((part, bytes)))
    }

    /// Takes previews away that nobody can see any more: first their bytes, then the rows.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn forget_previews(&self) -> Result<(), StoreError> {
        const AT_ONCE: u32 = 100;
        let mut batches = Batches::of(AT_ONCE);
        loop {
            let (skipped, limit) = batches.next();
            let found = self.store().forgotten_previews(RENDERER, skipped, limit);
            let found = found.await?;
            for id in &found {
                if self.forget_parts(*id).await? {
                    self.store().forget_preview(*id).await?;
                } else {
                    batches.leave();
                }
            }
            if batches.is_enough(found.len()) {
                return Ok(());
            }
        }
    }

    /// Takes the parts of a preview away, each with its bytes first. Says whether none is left: one
    /// whose bytes cannot be deleted stays known.
    ///
    /// # Errors
    /// When the database does not answer.
    pub(crate) async fn forget_parts(&self, id: PreviewId) -> Result<bool, StoreError> {
        let mut are_gone = true;
        for name in self.store().preview_parts(id).await? {
            let key = ObjectKey::PreviewPart(id, name.clone());
            if let Err(error) = self.objects().forget(key).await {
                tracing::warn!(preview = %id, name, error = chain(&error), "deleting a part");
                are_gone = false;
                continue;
            }
            self.store().forget_preview_part(id, &name).await?;
        }
        Ok(are_gone)
    }

    /// Keeps a part of a preview: first its bytes, then the row that says that they are there.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn keep_part(
        &self,
        id: PreviewId,
        name: &str,
        media_type: &str,
        bytes: &[u8],
    ) -> Result<(), StoreError> {
        let key = ObjectKey::PreviewPart(id, name.into());
        let mut upload = self.objects().create(key).await?;
        upload.write(bytes).await?;
        upload.finish().await?;
        let part = PreviewPart {
            name: name.into(),
            bytes: bytes.len() as u64,
            media_type: media_type.into(),
        };
        self.store().keep_preview_part(id, &part).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_that_waits_says_why() {
        let now = Utc::now();
        let standing = TaskStanding {
            due_at: now,
            last_error: None,
            is_taken: false,
            others_are_taken: false,
        };
        let why = |standing: &TaskStanding| waits(standing).message.unwrap_or_default();
        assert_eq!(why(&standing), "");
        let taken = TaskStanding {
            is_taken: true,
            last_error: Some("there was no room".into()),
            ..standing.clone()
        };
        assert_eq!(why(&taken), "", "somebody has just begun");
        let behind = TaskStanding {
            others_are_taken: true,
            ..standing.clone()
        };
        assert!(why(&behind).contains("take turns"));
        let put_off = TaskStanding {
            last_error: Some("there was no room".into()),
            ..behind
        };
        assert_eq!(why(&put_off), "there was no room");
        let unseen = TaskStanding {
            due_at: now - TimeDelta::minutes(1),
            ..standing
        };
        assert!(why(&unseen).contains("no worker"));
        assert!(waits(&unseen).fix.unwrap().contains("glovebox worker"));
    }
}
