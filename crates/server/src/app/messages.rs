//! Messages: sent, answered, stopped, tried again.

use glovebox_protocol::ids::{AttachmentId, MessageId, ThreadId};
use glovebox_protocol::sign::BodyDigest;
use glovebox_protocol::thread::MessageKind;
use glovebox_store::{Access, NewMessage, PlacedMessage, Thread, Transaction};

use super::chats::MAX_FILES;
use super::threads::ChatError;
use super::{App, to_its_end};

/// Longest message, in characters.
pub const MAX_TEXT: usize = 100_000;

/// What somebody wants to say.
#[derive(Debug, Clone)]
pub struct Sending {
    /// Words or code.
    pub kind: MessageKind,
    /// The words or the code.
    pub text: String,
    /// What was uploaded for it.
    pub attachments: Vec<AttachmentId>,
    /// What the caller calls this request, so that it may be repeated.
    pub idempotency_key: Option<String>,
}

/// A message and the reply to it, which is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Accepted {
    /// The message.
    pub message: MessageId,
    /// The reply.
    pub reply: MessageId,
}

impl Sending {
    fn check(&self) -> Result<(), ChatError> {
        let is_empty = self.text.trim().is_empty();
        let needs_text = self.kind == MessageKind::Code || self.attachments.is_empty();
        if is_empty && needs_text {
            return Err(ChatError::Invalid {
                message: "the message is empty".into(),
                fix: "send words, code or a file",
            });
        }
        if self.text.contains('\0') {
            return Err(ChatError::Invalid {
                message: "the message holds the character U+0000".into(),
                fix: "send it without",
            });
        }
        if self.text.chars().count() > MAX_TEXT {
            return Err(ChatError::Invalid {
                message: format!("a message has at most {MAX_TEXT} characters"),
                fix: "send the rest as a file",
            });
        }
        if self.attachments.len() > MAX_FILES {
            return Err(ChatError::Invalid {
                message: format!("{MAX_FILES} files can be sent with one message"),
                fix: "send the others with another one",
            });
        }
        Ok(())
    }

    /// What has to be the same for a request to be the same.
    fn hash(&self) -> String {
        let files: Vec<_> = self.attachments.iter().map(ToString::to_string).collect();
        let whole = format!("{}\n{}\n{}", self.kind.as_str(), files.join(","), self.text);
        BodyDigest::of(whole.as_bytes()).to_string()
    }
}

impl App {
    /// Sends a message. The reply to it is on its way when this returns.
    ///
    /// # Errors
    /// When the caller may not write into the thread, a reply is on its way already, or the message
    /// is not as it has to be.
    pub async fn send_message(
        &self,
        access: &Access,
        thread: ThreadId,
        sending: Sending,
    ) -> Result<Accepted, ChatError> {
        sending.check()?;
        let new = NewMessage {
            request_hash: sending.hash(),
            kind: sending.kind,
            text: sending.text,
            attachments: sending.attachments,
            idempotency_key: sending.idempotency_key,
        };
        let mut changes = self.store().begin().await?;
        let found = writable(access, changes.hold_thread(thread).await?)?;
        let placed = changes.place_message(access, &found, &new).await?;
        self.answer_placed(access, thread, (changes, placed)).await
    }

    /// Tries the reply to the newest message once more, with the rights of whoever asks.
    ///
    /// # Errors
    /// As for [`App::send_message`]; when it is not the newest one.
    pub async fn retry_message(
        &self,
        access: &Access,
        thread: ThreadId,
        message: MessageId,
    ) -> Result<Accepted, ChatError> {
        let mut changes = self.store().begin().await?;
        let found = writable(access, changes.hold_thread(thread).await?)?;
        let placed = changes.place_retry(access, &found, message).await?;
        self.answer_placed(access, thread, (changes, placed)).await
    }

    /// Keeps what was placed, and begins to drive the reply to it: whoever sees the one waits for the
    /// other, wherever the sender is by then.
    async fn answer_placed(
        &self,
        access: &Access,
        thread: ThreadId,
        (changes, placed): (Transaction, PlacedMessage),
    ) -> Result<Accepted, ChatError> {
        let (app, access) = (self.clone(), access.clone());
        to_its_end(async move {
            if matches!(placed, PlacedMessage::New { .. }) {
                changes.commit().await?;
            }
            app.begin_reply(&access, thread, placed).await
        })
        .await
    }

    /// Drives the reply of what was placed.
    async fn begin_reply(
        &self,
        access: &Access,
        thread: ThreadId,
        placed: PlacedMessage,
    ) -> Result<Accepted, ChatError> {
        let (message, reply, last_seq) = match placed {
            PlacedMessage::New {
                message,
                reply,
                last_seq,
            } => (message, reply, last_seq),
            PlacedMessage::Repeated { message, reply } => return Ok(Accepted { message, reply }),
            PlacedMessage::KeyIsTaken => return Err(ChatError::KeyIsTaken),
            PlacedMessage::Busy(reply) => return Err(ChatError::Busy { reply }),
            PlacedMessage::NoAttachment(id) => return Err(ChatError::NoAttachment(id)),
            PlacedMessage::NotNewest => return Err(ChatError::NotNewest),
        };
        self.live().told(thread, last_seq);
        let store = self.store();
        let found = store.thread(thread).await?;
        let question = store.message(thread, message).await?;
        let begun = store.message(thread, reply).await?;
        // Where the thread was deleted meanwhile there is nothing to be driven.
        if let (Some(found), Some(question), Some(begun)) = (found, question, begun) {
            self.drive_reply(access.clone(), found, question, begun);
        }
        Ok(Accepted { message, reply })
    }

    /// Asks for the end of what runs in a thread, through whichever server, and says what that is.
    /// Where a reply is named, only of that one: the next may have begun since it was seen.
    ///
    /// # Errors
    /// When the caller may not write into the thread.
    pub async fn stop_thread(
        &self,
        access: &Access,
        thread: ThreadId,
        only: Option<MessageId>,
    ) -> Result<Option<MessageId>, ChatError> {
        writable(access, self.store().thread(thread).await?)?;
        let reply = self.store().ask_to_stop(thread, only).await?;
        if let Some(reply) = reply {
            self.live().stop(reply);
        }
        Ok(reply)
    }
}

/// A thread that somebody may write into.
fn writable(access: &Access, thread: Option<Thread>) -> Result<Thread, ChatError> {
    let thread = thread.filter(|thread| thread.may_read(access));
    let thread = thread.ok_or(ChatError::NotFound("thread"))?;
    if thread.may_write(access) {
        Ok(thread)
    } else {
        Err(ChatError::Forbidden(
            "whoever reads this thread may not write into it",
        ))
    }
}
