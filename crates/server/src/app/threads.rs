//! Threads: begun, renamed, shared, deleted.

use chrono::{DateTime, Utc};
use glovebox_protocol::ids::{AttachmentId, MessageId, ThreadId};
use glovebox_store::{Access, EndedWhy, NewThread, Permission, StoreError, Thread, plain_title};

use super::batches::Batches;
use super::{App, to_its_end};
use crate::failure::chain;

/// How many deleted threads are taken away in one go.
const PURGED: u32 = 20;

/// Longest title, in characters.
pub const MAX_TITLE: usize = 200;

/// Why something is not done with a thread or its files.
#[derive(Debug, thiserror::Error)]
pub enum ChatError {
    /// There is none, or the caller may not know of it.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The caller may read it and not do this.
    #[error("{0}")]
    Forbidden(&'static str),
    /// What was sent is not of the form that it has to be.
    #[error("{message}")]
    Invalid {
        /// What is wrong.
        message: String,
        /// What to do.
        fix: &'static str,
    },
    /// A reply is on its way.
    #[error("a reply is on its way in this thread")]
    Busy {
        /// Which one.
        reply: MessageId,
    },
    /// Something else was sent under the same key.
    #[error("another message was sent with this Idempotency-Key")]
    KeyIsTaken,
    /// A file is not there to be sent.
    #[error("there is no file {0} that could be sent")]
    NoAttachment(AttachmentId),
    /// Only the newest message can be answered again.
    #[error("it is not the newest message of the thread")]
    NotNewest,
    /// More than is taken.
    #[error("{message}")]
    TooLarge {
        /// What is too large, and the limit.
        message: String,
        /// What to do.
        fix: &'static str,
    },
    /// The upload did not come to its end.
    #[error("the upload broke off")]
    BrokenOff,
    /// A name is taken.
    #[error("there is a file of this name in the knowledge base")]
    NameTaken,
    /// It cannot be restored.
    #[error("{0}")]
    NotRestorable(&'static str),
    /// A quota of the workspace is reached.
    #[error("{message}")]
    Quota {
        /// `quota:…`.
        name: &'static str,
        /// What is left, and of how much.
        message: String,
        /// What to do.
        fix: &'static str,
    },
    /// The disk keeps no more files of people.
    #[error("{}", crate::failure::NO_ROOM)]
    DiskFull,
    /// The database or the files failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What somebody wants of a thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadChange {
    /// Another title.
    pub title: Option<String>,
    /// Shared, or private.
    pub is_shared: Option<bool>,
    /// The version that was seen.
    pub version: i64,
}

/// A title as it is kept.
fn title(given: &str) -> Result<String, ChatError> {
    let title = plain_title(given);
    if title.is_empty() || title.chars().count() > MAX_TITLE {
        return Err(ChatError::Invalid {
            message: format!("a title has 1 to {MAX_TITLE} characters"),
            fix: "send a shorter one, or none",
        });
    }
    Ok(title)
}

/// Refuses those who may only read.
pub(super) fn needs_write(access: &Access) -> Result<(), ChatError> {
    if access.may(Permission::Write) {
        Ok(())
    } else {
        Err(ChatError::Forbidden("viewers read and do not write"))
    }
}

impl App {
    /// Begins a thread.
    ///
    /// # Errors
    /// When the caller may not write, or the title is none.
    pub async fn create_thread(
        &self,
        access: &Access,
        given: Option<&str>,
        is_shared: bool,
    ) -> Result<Thread, ChatError> {
        needs_write(access)?;
        let new = NewThread {
            id: ThreadId::new(),
            title: given.map(title).transpose()?,
            is_shared,
        };
        let mut changes = self.store().begin().await?;
        changes.create_thread(access, &new).await?;
        changes.commit().await?;
        self.thread(access, new.id).await
    }

    /// A thread that the caller may read.
    ///
    /// # Errors
    /// When there is none.
    pub async fn thread(&self, access: &Access, id: ThreadId) -> Result<Thread, ChatError> {
        let thread = self.store().thread_of(access, id).await?;
        thread.ok_or(ChatError::NotFound("thread"))
    }

    /// Renames a thread, shares it, or makes it private again.
    ///
    /// # Errors
    /// When there is none, it is not the caller's, or somebody changed it since.
    pub async fn change_thread(
        &self,
        access: &Access,
        id: ThreadId,
        change: &ThreadChange,
    ) -> Result<Thread, ChatError> {
        let mut thread = self.own_thread(access, id).await?;
        thread.version = change.version;
        if let Some(given) = &change.title {
            thread.title = title(given)?;
            thread.is_titled = true;
        }
        if let Some(is_shared) = change.is_shared {
            thread.is_shared = is_shared;
        }
        let mut changes = self.store().begin().await?;
        changes.update_thread(&thread).await?;
        changes.commit().await?;
        let thread = self.thread(access, id).await?;
        self.live().told(id, thread.last_seq);
        Ok(thread)
    }

    /// Deletes a thread: nobody sees anything of it any more, what runs in it ends, and so does its
    /// sandbox.
    ///
    /// # Errors
    /// When there is none, or it is not the caller's.
    pub async fn delete_thread(&self, access: &Access, id: ThreadId) -> Result<(), ChatError> {
        self.own_thread(access, id).await?;
        let app = self.clone();
        to_its_end(async move { app.delete_and_end(id).await }).await
    }

    async fn delete_and_end(&self, id: ThreadId) -> Result<(), ChatError> {
        let mut changes = self.store().begin().await?;
        changes.hold_thread(id).await?;
        changes.delete_thread(id).await?;
        changes.commit().await?;
        if let Some(reply) = self.store().ask_to_stop(id, None).await? {
            self.live().stop(reply);
        }
        // Readers look again, and find that there is nothing to read.
        self.live().told(id, u64::MAX);
        for lease in self.store().leases_of_thread(id).await? {
            if lease.ended_at.is_some() {
                continue;
            }
            let detail = "its thread was deleted";
            let removed = self.remove_sandbox(lease.id, EndedWhy::Asked, detail).await;
            if let Err(error) = removed {
                // The note is kept: the worker ends what is there still.
                tracing::warn!(sandbox = %lease.id, error = chain(&error), "ending the sandbox of a deleted thread");
            }
        }
        Ok(())
    }

    /// Takes away for good what was deleted before some time: the files first, so that none is left
    /// that nobody knows of. One that cannot be taken away keeps no other from it, and is tried again
    /// the next time.
    ///
    /// # Errors
    /// When the store does not say which there are.
    pub async fn purge_threads(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let mut batches = Batches::of(PURGED);
        loop {
            let (skipped, limit) = batches.next();
            let found = self.store().threads_deleted_before(before, skipped, limit);
            let found = found.await?;
            for id in &found {
                match self.purge_thread(*id).await {
                    Ok(()) => tracing::info!(thread = %id, "a deleted thread was taken away"),
                    Err(error) => {
                        batches.leave();
                        tracing::warn!(thread = %id, error = chain(&error), "taking away a deleted thread");
                    }
                }
            }
            if batches.is_enough(found.len()) {
                return Ok(());
            }
        }
    }

    async fn purge_thread(&self, id: ThreadId) -> Result<(), StoreError> {
        for object in self.store().objects_of_thread(id).await? {
            self.objects().forget(object).await?;
        }
        self.store().purge_thread(id).await
    }

    /// A thread that the caller may rename, share and delete.
    async fn own_thread(&self, access: &Access, id: ThreadId) -> Result<Thread, ChatError> {
        let thread = self.thread(access, id).await?;
        if thread.may_change(access) {
            Ok(thread)
        } else {
            Err(ChatError::Forbidden(
                "only its owner renames, shares and deletes a thread",
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_one_line() {
        assert_eq!(title("  a\nb\t ").unwrap(), "a b");
        assert_eq!(
            title("\u{202e}gpj.exe \u{2066}x\u{200b}").unwrap(),
            "gpj.exe  x"
        );
        assert!(title(" \n").is_err());
        assert!(title(&"x".repeat(MAX_TITLE + 1)).is_err());
        assert!(title(&"ä".repeat(MAX_TITLE)).is_ok());
    }
}
