//! What happens in a thread of chat, as it is stored and streamed. What happens while code runs
//! is in the one list of [`crate::event`], and comes wrapped in [`ThreadEventBody::StepEvent`].

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::EventBody;
use crate::ids::{ArtifactId, AttachmentId, ExecutionId, MessageId, UserId};

/// One event of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadEvent {
    /// Counts up from 1 without gaps within one thread.
    pub seq: u64,
    /// When it happened (UTC).
    pub at: DateTime<Utc>,
    /// What happened: `type` and `data`.
    #[serde(flatten)]
    pub body: ThreadEventBody,
}

/// What happened in a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum ThreadEventBody {
    /// Somebody sent a message.
    MessageSent {
        /// Which one.
        message: MessageId,
        /// Who sent it.
        author: Author,
        /// Whether it is words or Python.
        kind: MessageKind,
        /// The words or the code.
        text: String,
        /// Files that were sent with it, under the names that they have in the thread.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<SentFile>,
    },
    /// A reply begins. It follows what it answers; one answer may be tried several times.
    ReplyStarted {
        /// The reply.
        reply: MessageId,
        /// What it answers.
        reply_to: MessageId,
    },
    /// The reply's words go on, as markdown.
    Text {
        /// The reply.
        reply: MessageId,
        /// What is added.
        text: String,
    },
    /// The main assistant hands a task over to the `code_execution` sub-agent.
    HandedOver {
        /// The reply.
        reply: MessageId,
        /// The task, in words.
        task: String,
    },
    /// What is being done now, in one line.
    Plan {
        /// The reply.
        reply: MessageId,
        /// The line.
        text: String,
    },
    /// Code is about to run.
    StepStarted {
        /// The reply.
        reply: MessageId,
        /// Counts up from 1 within the reply.
        step: u32,
        /// The Python.
        code: String,
    },
    /// Something happened while a step's code ran.
    StepEvent {
        /// The reply.
        reply: MessageId,
        /// The step.
        step: u32,
        /// What: one of the events of an execution.
        event: EventBody,
    },
    /// A step's code has ended, or could not be run.
    StepEnded {
        /// The reply.
        reply: MessageId,
        /// The step.
        step: u32,
        /// The execution, where there was one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        execution: Option<ExecutionId>,
        /// Whether the code did what it was meant to do.
        is_success: bool,
        /// How it ended, in plain words.
        summary: String,
        /// What can be done, where something can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fix: Option<String>,
        /// The stable word of what kept the code from running, as of a reply that failed:
        /// `quota:max_concurrent`, `runtime_unavailable`, …
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// Milliseconds from its start to its end.
        duration_ms: u64,
    },
    /// A file was saved: one version of one name.
    FileSaved {
        /// The reply; nothing where a person restored an older version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<MessageId>,
        /// The step that it came out of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step: Option<u32>,
        /// The version.
        artifact: ArtifactId,
        /// Its name for display.
        name: String,
        /// Counts up from 1 with each save of the name in the thread.
        version: u32,
        /// Its size in bytes.
        bytes: u64,
        /// Its media type, by content.
        media_type: String,
        /// The version that was restored, where one was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        restored_version: Option<u32>,
    },
    /// Something that everybody in the thread has to know, such as that a new sandbox took the
    /// place of the last one.
    Notice {
        /// The reply, where it belongs to one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reply: Option<MessageId>,
        /// What for programs is the reason: `sandbox_replaced`, `kernel_replaced`, …
        code: String,
        /// The same in plain words.
        text: String,
        /// What can be done, where something can.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fix: Option<String>,
    },
    /// A reply is over.
    ReplyEnded {
        /// The reply.
        reply: MessageId,
        /// How it ended.
        outcome: ReplyOutcome,
        /// Why it failed, and what to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ReplyFailure>,
        /// How many steps ran.
        steps: u32,
        /// Milliseconds from its start to its end.
        duration_ms: u64,
    },
    /// The thread has another title, or is shared or private now.
    ThreadChanged {
        /// Its title.
        title: String,
        /// Whether every member reads it.
        is_shared: bool,
    },
}

/// Who sent a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Author {
    /// The person; nothing for a service's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// What people call them.
    pub name: String,
}

/// Whether a message is words or code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageKind {
    /// Words for the assistant.
    Text,
    /// Python that the person typed.
    Code,
}

impl MessageKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Code => "code",
        }
    }
}

impl std::str::FromStr for MessageKind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        match word {
            "text" => Ok(Self::Text),
            "code" => Ok(Self::Code),
            _ => Err(UnknownKind),
        }
    }
}

/// A word that names no kind of message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a message is `text` or `code`")]
pub struct UnknownKind;

/// A file that was sent with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentFile {
    /// Which one.
    pub attachment: AttachmentId,
    /// Its name in the thread and in the sandbox.
    pub name: String,
    /// What it was called when it was uploaded, where a name of the thread was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploaded_as: Option<String>,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its media type, by content.
    pub media_type: String,
}

/// Why a reply could not go on. In the shape of every error, with codes that are not only those of
/// [`crate::error::ErrorCode`]: a denial of the gate is known by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyFailure {
    /// A stable word for programs: `no_model`, `quota:max_concurrent`, `runtime_unavailable`, …
    pub code: String,
    /// What is the matter, in a sentence for people.
    pub message: String,
    /// What to do about it.
    pub fix: String,
    /// More for programs; depends on the code.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub details: Value,
}

impl ReplyFailure {
    /// A failure with a code, a sentence, and what to do about it.
    #[must_use]
    pub fn new(
        code: impl Into<String>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            fix: fix.into(),
            details: Value::Null,
        }
    }

    /// Adds facts for programs.
    #[must_use]
    pub fn with(mut self, details: Value) -> Self {
        self.details = details;
        self
    }
}

/// How a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyOutcome {
    /// It said all that it had to say.
    Done,
    /// Somebody stopped it.
    Stopped,
    /// It could not go on.
    Failed,
}
