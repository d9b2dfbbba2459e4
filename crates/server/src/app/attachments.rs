//! Attachments: uploaded, read, and thrown away where they are never sent.

use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::Stream;
use glovebox_protocol::ids::AttachmentId;
use glovebox_store::{Access, Attachment, NewAttachment, Permission, StoreError, UploadedName};

use super::App;
use super::threads::ChatError;
use super::uploads::too_large;

/// How many files somebody can have uploaded and not sent.
const MAX_UNSENT: u64 = 100;

/// How many that were never sent are looked at in one go.
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
        if !access.may(Permission::Write) {
            return Err(ChatError::Forbidden("viewers read and do not write"));
        }
        let limits = self.file_limits(access).await?;
        let (files, waiting) = self.store().unsent(access).await?;
        let left = limits.total_bytes.saturating_sub(waiting);
        if files >= MAX_UNSENT || left == 0 {
            return Err(ChatError::TooLarge {
                message: format!(
                    "{files} files of {waiting} bytes are uploaded and not sent; the limits are \
                     {MAX_UNSENT} files and {} bytes",
                    limits.total_bytes
                ),
                fix: "send them, or remove some",
            });
        }
        let limit = limits.file_bytes.min(left);
        if announced.is_some_and(|bytes| bytes > limit) {
            return Err(too_large(limit));
        }
        let (id, name) = (AttachmentId::new(), UploadedName::of(name));
        let received = self.receive(id.into(), name.as_str(), limit, parts).await?;
        let new = NewAttachment {
            id,
            name,
            bytes: received.bytes,
            sha256: received.sha256,
            media_type: received.media_type,
        };
        if let Err(error) = self.store().create_attachment(access, &new).await {
            // Without its row nobody would ever find it.
            let _ = self.forget(id.into()).await;
            return Err(error.into());
        }
        self.attachment(access, id).await
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
        if found.thread_id.is_some() || !self.store().delete_unsent(id).await? {
            return Err(ChatError::Forbidden(
                "what was sent belongs to its thread, and stays there",
            ));
        }
        self.forget(id.into()).await?;
        Ok(())
    }

    /// Throws away what was uploaded before some time and never sent.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) async fn sweep_attachments(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        for found in self.store().unsent_before(before, SWEPT).await? {
            // First the row: what is sent just now is not touched.
            if self.store().delete_unsent(found.id).await? {
                self.forget(found.id.into()).await?;
                tracing::info!(attachment = %found.id, "a file that was never sent was thrown away");
            }
        }
        Ok(())
    }
}
