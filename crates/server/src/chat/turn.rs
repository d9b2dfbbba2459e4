//! What a reply can do: the only way from an assistant to a thread, its sandbox and its files.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use glovebox_protocol::ids::{MessageId, SandboxId};
use glovebox_protocol::thread::{
    Author, MessageKind, ReplyFailure, ReplyOutcome, SentFile, ThreadEventBody,
};
use glovebox_store::{Access, KeyScope, Message, StoreError, Thread};
use serde_json::Value;
use tokio::sync::watch;

use crate::app::App;
use crate::app::models::ModelAdminError;
use crate::chat::model::ModelEndpoint;

/// One reply on its way: it runs with the rights of whoever asked for it, in one thread.
pub(crate) struct Turn {
    pub(super) app: App,
    access: Access,
    pub(super) thread: Thread,
    question: Message,
    reply: Message,
    stop: watch::Receiver<bool>,
    /// How long it was allowed to take, once that is over.
    ran_out: OnceLock<Duration>,
    steps: AtomicU32,
    /// What a model is to be told with the next step.
    carried: Mutex<Vec<String>>,
    /// The last sandbox of which it was told what it took the place of.
    noted: Mutex<Option<SandboxId>>,
}

/// What a file of a thread is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// It was sent with a message.
    Attachment,
    /// Code has made it.
    Artifact,
    /// It belongs to the workspace's knowledge base.
    Knowledge,
}

/// A file that code of the thread can open by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ThreadFile {
    /// Its name in the sandbox.
    pub(crate) name: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its media type, by content.
    pub(crate) media_type: String,
    /// What it is.
    pub(crate) kind: FileKind,
    /// Which version of its name, for an artifact.
    pub(crate) version: Option<u32>,
}

/// What the knowledge base of the workspace holds, as far as it is told to a model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Knowledge {
    /// Names, those of the newest files first.
    pub(crate) names: Vec<String>,
    /// Whether it holds more.
    pub(crate) has_more: bool,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// A person, or a program with a key.
    User,
    /// The assistant, or the code that a person typed.
    Assistant,
}

/// Something that was said before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PastMessage {
    /// Who said it.
    pub(crate) role: Speaker,
    /// Whether it is words or code; of a reply, whether it answers words or code.
    pub(crate) kind: MessageKind,
    /// The words or the code; of a reply to code, what came of it.
    pub(crate) text: String,
    /// Files that were sent with it.
    pub(crate) attachments: Vec<SentFile>,
    /// Who wrote it; nothing for a reply.
    pub(crate) author: Option<Author>,
    /// What [`Turn::keep_turns`] kept; null where it kept nothing.
    pub(crate) turns: Value,
}

/// What came of a step, bounded: for the model's summary.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StepReport {
    /// Counts up from 1 within the reply.
    pub(crate) step: u32,
    /// Whether the code did what it was meant to do.
    pub(crate) is_success: bool,
    /// How it ended, in plain words.
    pub(crate) summary: String,
    /// What can be done, where something can.
    pub(crate) fix: Option<String>,
    /// The last 4 000 characters of the output, without terminal colours.
    pub(crate) output_tail: String,
    /// How many bytes of output are not in the tail.
    pub(crate) output_cut_bytes: u64,
    /// The value of the last expression as text, at most 4 000 characters.
    pub(crate) result_text: Option<String>,
    /// An exception that reached the top: its class, and its text with the lines of the person's
    /// own code that it came from.
    pub(crate) error: Option<(String, String)>,
    /// What was saved.
    pub(crate) files: Vec<ThreadFile>,
    /// What was not, and why.
    pub(crate) left_out: Vec<(String, String)>,
    /// Why nobody knows what was saved, where it could not be looked at or stored.
    pub(crate) not_collected: Option<String>,
    /// What everybody in the thread was told meanwhile.
    pub(crate) notices: Vec<String>,
}

/// Why a step could not run at all, or not to its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TurnError {
    /// Something is in the way: it has a code, a sentence and what to do about it.
    #[error("{}", .0.message)]
    Refused(ReplyFailure),
    /// Somebody asked for the end of the reply.
    #[error("the reply was stopped")]
    Stopped,
    /// The database or the files failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Turn {
    /// `messages` are what is answered, and the reply.
    pub(super) fn new(
        app: App,
        access: Access,
        thread: Thread,
        messages: (Message, Message),
        stop: watch::Receiver<bool>,
    ) -> Self {
        let (question, reply) = messages;
        Self {
            app,
            access,
            thread,
            question,
            reply,
            stop,
            ran_out: OnceLock::new(),
            steps: AtomicU32::new(0),
            carried: Mutex::default(),
            noted: Mutex::default(),
        }
    }

    /// Keeps what a model is to be told with the next step.
    pub(super) fn carry(&self, notice: String) {
        // A list of words has no state in which it could be left half changed.
        let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        carried.push(notice);
    }

    /// Whether it is to be told what a sandbox took the place of: once.
    pub(super) fn is_to_note(&self, sandbox: SandboxId) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.replace(sandbox) != Some(sandbox)
    }

    /// What was kept to be told with this step.
    pub(super) fn carried(&self) -> Vec<String> {
        let mut carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut carried)
    }

    /// Stores and streams an event of the thread. Whoever tells text batches it.
    pub(crate) async fn tell(&self, body: ThreadEventBody) -> Result<(), StoreError> {
        self.tell_all(&[body]).await
    }

    /// The same for several at once, in their order.
    pub(super) async fn tell_all(&self, bodies: &[ThreadEventBody]) -> Result<(), StoreError> {
        if bodies.is_empty() {
            return Ok(());
        }
        let seq = self.app.store().tell(self.thread.id, bodies).await?;
        self.app.live().told(self.thread.id, seq);
        Ok(())
    }

    /// The reply.
    pub(crate) fn reply(&self) -> MessageId {
        self.reply.id
    }

    /// What is answered.
    pub(crate) fn question(&self) -> &Message {
        &self.question
    }

    /// The endpoint that answers words, with its key; nothing where none is set.
    pub(super) async fn model(&self) -> Result<Option<ModelEndpoint>, ModelAdminError> {
        self.app.chat_model().await
    }

    /// What whoever asked for the reply may do at this moment: roles and keys change while a
    /// reply is on its way.
    pub(super) async fn access(&self) -> Result<Access, TurnError> {
        let store = self.app.store();
        let now = store.present_access(&self.access).await?;
        let thread = store.thread(self.thread.id).await?;
        now.filter(|access| thread.is_some_and(|thread| thread.may_write(access)))
            .ok_or_else(|| {
                super::failure::refused(
                    "forbidden",
                    "whoever asked for this may not write into the thread any more",
                    "ask an admin of the workspace",
                )
            })
    }

    /// Resolves when somebody has asked for the end of this reply, also through another server.
    pub(crate) async fn stopped(&self) {
        // Once the sender is gone the reply is over, too.
        let _ = self.stop.clone().wait_for(|asked| *asked).await;
    }

    /// Whether somebody has.
    pub(super) fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// The time of the reply is over: it ends like one that is stopped, but for what is told of it.
    /// One that is being stopped already stays so.
    pub(super) fn run_out(&self, limit: Duration) {
        if !self.is_stopped() {
            // It runs out once.
            let _ = self.ran_out.set(limit);
            self.app.live().stop(self.reply.id);
        }
    }

    /// How long it was allowed to take, where that is why it ends.
    pub(super) fn ran_out(&self) -> Option<Duration> {
        self.ran_out.get().copied()
    }

    /// Runs code in the thread's sandbox as the next step. Everything that people see of it is
    /// told: its start, what happens, what is saved, its end.
    pub(crate) async fn run_python(&self, code: &str) -> Result<StepReport, TurnError> {
        if self.is_stopped() {
            return Err(TurnError::Stopped);
        }
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        super::step::run(self, step, code).await
    }

    /// Files that code can open: attachments, and the newest version of each artifact.
    pub(crate) async fn files(&self) -> Result<Vec<ThreadFile>, StoreError> {
        super::past::files(&self.app, self.thread.id).await
    }

    /// Puts a file of the knowledge base into the thread's sandbox by its name.
    pub(crate) async fn open_knowledge_file(&self, name: &str) -> Result<ThreadFile, TurnError> {
        super::stage::open_knowledge_file(self, name).await
    }

    /// What the knowledge base holds: nothing for whoever may not read it.
    pub(crate) async fn knowledge(&self) -> Result<Knowledge, TurnError> {
        let access = self.access().await?;
        if !access.has_scope(KeyScope::KnowledgeRead) {
            return Ok(Knowledge::default());
        }
        Ok(super::past::knowledge(&self.app, &access).await?)
    }

    /// What was said so far, the oldest first; last what this reply answers.
    pub(crate) async fn history(&self) -> Result<Vec<PastMessage>, StoreError> {
        super::past::history(&self.app, self.thread.id, &self.question, self.reply.id).await
    }

    /// Keeps what the model said and was told, for the next replies of the thread.
    pub(crate) async fn keep_turns(&self, turns: &Value, text: &str) -> Result<(), StoreError> {
        self.app
            .store()
            .keep_reply(self.reply.id, turns, text)
            .await
    }

    /// Ends the reply, once.
    pub(super) async fn end(
        &self,
        outcome: ReplyOutcome,
        error: Option<ReplyFailure>,
    ) -> Result<(), StoreError> {
        let steps = self.steps.load(Ordering::Relaxed);
        let store = self.app.store();
        if let Some(seq) = store.end_reply(&self.reply, outcome, error, steps).await? {
            self.app.live().told(self.thread.id, seq);
            self.app.metrics().replied(outcome);
        }
        Ok(())
    }
}
