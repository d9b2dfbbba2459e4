//! Attachments: uploaded, read, and thrown away where they are never sent.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::Stream;
use glovebox_protocol::ids::AttachmentId;
use glovebox_store::{Access, Attachment, NewAttachment, StoreError, UploadedName};

use super::App;
use super::batches::Batches;
use super::threads::{ChatError, needs_write};
use super::uploads::too_large;
use crate::failure::chain;

/// How many files somebody can have uploaded and not sent.
const MAX_UNSENT: u64 = 100;

/// How many that were never sent are thrown away in one go.
const SWEPT: u32 = 100;

impl App {
    /// Receives a file that is to be sent with a message. `announced` is how long the caller says
    /// that it is.
    ///
    /// # Errors
    /// When the caller may not write, the file is too large, or too much is waiting to be sent.
    pub async fn upload_attachment<E>(
        &self,
        access: &Access,
        name: &str,
        announced: Option<u64>,
        parts: impl Stream<Item = Result<Bytes, E>> + Unpin,
    ) -> Result<Attachment, ChatError> {
        needs_write(access)?;
        let limits = self.file_limits(access).await?;
        let (files, waiting) = self.store().unsent(access).await?;
        let left = limits.total_bytes.saturating_sub(waiting);
        if files >= MAX_UNSENT || left == 0 {
            return Err(too_much_unsent(files, waiting, limits.total_bytes));
        }
        let limit = limits.file_bytes.min(left);
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(too_large(limit));
        }
        self.may_upload(access, announced).await?;
        let (id, name) = (AttachmentId::new(), UploadedName::of(name));
        let receiving = self.receive(id.into(), name.as_str(), limit, parts);
        let (received, upload) = receiving.await?;
        let new = received.kept_as(id, name);
        let (app, access_of, total) = (self.clone(), access.clone(), limits.total_bytes);
        let keep = async move { app.keep_attachment(&access_of, &new, total).await };
        self.keep_received(id.into(), upload, keep).await?;
        self.attachment(access, id).await
    }

    /// Makes the row of what was uploaded. Others may have come at the same time: what waits to be
    /// sent is counted once more, where it is counted once.
    async fn keep_attachment(
        &self,
        access: &Access,
        new: &NewAttachment,
        total: u64,
    ) -> Result<(), ChatError> {
        let mut changes = self.begin_upload(access, new.bytes).await?;
        let (files, waiting) = changes.unsent(access).await?;
        if files >= MAX_UNSENT || waiting.saturating_add(new.bytes) > total {
            return Err(too_much_unsent(files, waiting, total));
        }
        changes.create_attachment(access, new).await?;
        changes.commit().await?;
        Ok(())
    }

    /// An attachment that the caller may read.
    ///
    /// # Errors
    /// When there is none.
    pub async fn attachment(
        &self,
        access: &Access,
        id: AttachmentId,
    ) -> Result<Attachment, ChatError> {
        let found = self.store().attachment_of(access, id).await?;
        found.ok_or(ChatError::NotFound("attachment"))
    }

    /// Throws away what was uploaded and not sent.
    ///
    /// # Errors
    /// When there is none, or it was sent.
    pub async fn delete_attachment(
        &self,
        access: &Access,
        id: AttachmentId,
    ) -> Result<(), ChatError> {
        let found = self.attachment(access, id).await?;
        if found.thread_id.is_some() || !self.throw_away(id).await? {
            return Err(ChatError::Forbidden(
                "what was sent belongs to its thread, and stays there",
            ));
        }
        Ok(())
    }

    /// Throws away what was uploaded before some time and never sent. What cannot be thrown away
    /// keeps nothing else from it, and is tried again the next time.
    ///
    /// # Errors
    /// When the store does not say what there is.
    pub async fn throw_away_unsent(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let mut batches = Batches::of(SWEPT);
        loop {
            let (skipped, limit) = batches.next();
            let found = self.store().unsent_before(before, skipped, limit).await?;
            for attachment in &found {
                let id = attachment.id;
                match self.throw_away(id).await {
                    Ok(true) => {
                        tracing::info!(attachment = %id, "a file that was never sent was thrown away");
                    }
                    Ok(false) => {}
                    Err(error) => {
                        batches.leave();
                        tracing::warn!(attachment = %id, error = chain(&error), "throwing away a file that was never sent");
                    }
                }
            }
            if batches.is_enough(found.len()) {
                return Ok(());
            }
        }
    }

    /// Says whether it was still there and not sent.
    async fn throw_away(&self, id: AttachmentId) -> Result<bool, StoreError> {
        let mut changes = self.store().begin().await?;
        // First the row: what is sent just now is not touched.
        let is_deleted = changes.delete_unsent(id).await?;
        if is_deleted {
            self.throw_away_with(changes, id.into()).await?;
        }
        Ok(is_deleted)
    }
}

fn too_much_unsent(files: u64, waiting: u64, total: u64) -> ChatError {
    ChatError::TooLarge {
        message: format!(
            "{files} files of {waiting} bytes are uploaded and not sent; the limits are \
             {MAX_UNSENT} files and {total} bytes"
        ),
        fix: "send them, or remove some",
    }
}
