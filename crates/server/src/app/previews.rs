//! Previews: what a file looks like, for people who would rather look than download.
//!
//! Asking puts a task into a queue; a worker does it (`worker/preview`), in a throwaway sandbox
//! wherever a format is more than text. What is made is kept for the workspace and the bytes.

pub(crate) mod check;
pub(crate) mod contents;
pub(crate) mod format;
pub(crate) mod scripts;
pub(crate) mod text;

use bytes::Bytes;
use chrono::{TimeDelta, Utc};
use futures_util::stream::BoxStream;
use glovebox_protocol::ids::PreviewId;
use glovebox_store::{
    Access, NewPreview, ObjectKey, Preview, PreviewPart, PreviewSource, PreviewState, StoreError,
};
use serde_json::json;

use super::App;
use contents::Contents;
use format::Format;

/// The number of what makes previews: raised when it makes better ones, which are then made anew.
pub(crate) const RENDERER: i64 = 1;

/// The kind of task that makes one.
pub(crate) const MAKE: &str = "make";

/// How long a failure that may pass stands before asking again tries again, in seconds.
const RETRY_AFTER_SECONDS: i64 = 5;

/// The largest file that is looked into, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 100 << 20;

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
        let new = NewPreview {
            workspace_id: access.workspace(),
            file: &file,
            format: format.word(),
            renderer: RENDERER,
        };
        let mut changes = self.store().begin().await?;
        let mut preview = changes.place_preview(&new).await?;
        let may_pass = Contents::of(&preview).may_pass;
        let is_old = preview
            .made_at
            .is_some_and(|at| Utc::now() - at > TimeDelta::seconds(RETRY_AFTER_SECONDS));
        if preview.state == PreviewState::Failed && may_pass && is_old {
            changes.restart_preview(preview.id).await?;
            preview.state = PreviewState::Waiting;
            preview.contents = json!({});
        }
        let is_wanted = matches!(preview.state, PreviewState::Waiting | PreviewState::Making);
        if is_wanted {
            let subject = preview.id.to_string();
            let queue = crate::worker::Queue::Preview.name();
            changes
                .enqueue(queue, MAKE, &subject, &json!({}), Utc::now())
                .await?;
        }
        changes.commit().await?;
        if is_wanted {
            self.preview_wanted().notify_one();
        }
        Ok(Some(preview))
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
