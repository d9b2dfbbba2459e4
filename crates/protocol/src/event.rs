//! The one list of events: what happens while code runs, as agents stream it, as
//! `glovebox run --json` prints it, and as a server stores it.

use base64::Engine as _;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::ErrorBody;
use crate::file::FileName;
use crate::ids::{ExecutionId, SandboxId};
use crate::sign::BodyDigest;

/// One event as people and programs get it: numbered and dated by whoever shows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Counts up from 1 without gaps within one stream.
    pub seq: u64,
    /// When it was seen (UTC).
    pub at: DateTime<Utc>,
    /// What happened: `type` and `data`.
    #[serde(flatten)]
    pub body: EventBody,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum EventBody {
    /// A sandbox is being made.
    SandboxStarting {
        /// Which one.
        sandbox: SandboxId,
        /// Protections that are missing and were accepted by name; empty as a rule.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        accepted_weaker: Vec<String>,
    },
    /// The sandbox answers.
    SandboxReady {
        /// Which one.
        sandbox: SandboxId,
        /// Milliseconds since it was asked for.
        after_ms: u64,
    },
    /// The sandbox has ended by itself, or was ended from outside.
    SandboxGone {
        /// Which one.
        sandbox: SandboxId,
        /// Why, in words.
        reason: String,
    },
    /// A file was pushed into the workspace.
    InputStaged {
        /// Its name in the workspace, as people know it: nobody asks for the file by it.
        name: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its SHA-256.
        sha256: BodyDigest,
    },
    /// Code began to run.
    ExecutionStarted {
        /// Which run of code.
        execution: ExecutionId,
    },
    /// Bytes from standard output, subprocesses included.
    Stdout(Output),
    /// Bytes from standard error, subprocesses included.
    Stderr(Output),
    /// Output of an earlier execution that came after its end, such as from a thread left
    /// running. It is never mixed into the output of the present one.
    LateOutput {
        /// The execution that started whoever wrote it.
        execution: ExecutionId,
        /// The bytes, both streams together, cut to the last 64 KiB.
        output: Output,
        /// Bytes that were cut off in front.
        dropped_bytes: u64,
    },
    /// Something to show, in several forms to choose from (Jupyter `display_data`).
    Display(Shown),
    /// Replaces an earlier display with the same `display_id` (Jupyter `update_display_data`).
    UpdateDisplay(Shown),
    /// Earlier output is to be cleared (Jupyter `clear_output`).
    ClearOutput {
        /// Only when the next output comes.
        wait: bool,
    },
    /// The value of the last expression (Jupyter `execute_result`).
    Result {
        /// The number in `Out[n]`.
        execution_count: u32,
        /// The value in several forms.
        #[serde(flatten)]
        shown: Shown,
    },
    /// An exception reached the top (Jupyter `error`).
    Error {
        /// The exception's class.
        name: String,
        /// Its text.
        value: String,
        /// The traceback, a string per entry, with terminal colours.
        traceback: Vec<String>,
    },
    /// Output over its budget was dropped. Comes once, when the execution ends.
    OutputDropped {
        /// Bytes that were dropped.
        dropped_bytes: u64,
        /// The budget, in bytes.
        limit_bytes: u64,
    },
    /// The kernel was not there any more, and a fresh one took its place: variables are gone.
    KernelReplaced {
        /// Why the old one is gone, in words.
        reason: String,
    },
    /// The execution is over. The last event of its stream.
    ExecutionEnded(Ended),
    /// A cell of a notebook begins.
    CellStarted {
        /// Its place among the code cells, from 1.
        number: u32,
        /// How many code cells there are.
        of: u32,
    },
    /// A file left the sandbox.
    Artifact {
        /// Its name in the workspace.
        name: FileName,
        /// Where it was saved; differs from `name` when that was taken.
        saved_as: String,
        /// Its size in bytes.
        bytes: u64,
        /// Its SHA-256.
        sha256: BodyDigest,
        /// Its media type, by content.
        media_type: String,
        /// Whether the same bytes lay there already, so that nothing was written.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        already_there: bool,
    },
    /// A file stayed in the sandbox.
    LeftOut {
        /// Its name in the workspace.
        name: FileName,
        /// Why.
        reason: crate::artifact::LeftOutReason,
        /// The reason in words, with the limit that was met.
        message: String,
    },
    /// More files stayed in the sandbox than are listed.
    MoreLeftOut {
        /// How many are not listed.
        files: u64,
    },
    /// What the code saved could not be collected, by no fault of the code's.
    NotCollected {
        /// Why, and what becomes of the files, in words.
        message: String,
    },
    /// Glovebox itself failed. The last event of its stream.
    Failed(ErrorBody),
}

/// Bytes that a program wrote. In JSON they are `{"text": …}` where they are UTF-8 and
/// `{"base64": …}` where they are not, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output(pub Bytes);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutputForm<'a> {
    Text(std::borrow::Cow<'a, str>),
    Base64(String),
}

impl Serialize for Output {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => OutputForm::Text(text.into()),
            Err(_) => OutputForm::Base64(base64::engine::general_purpose::STANDARD.encode(&self.0)),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Output {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(match OutputForm::deserialize(deserializer)? {
            OutputForm::Text(text) => text.into_owned().into_bytes().into(),
            OutputForm::Base64(text) => base64::engine::general_purpose::STANDARD
                .decode(text)
                .map_err(serde::de::Error::custom)?
                .into(),
        }))
    }
}

/// A value in several forms, keyed by media type, as Jupyter has it: text forms are strings,
/// binary ones base64 strings, JSON ones JSON.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Media type to content.
    pub data: Map<String, Value>,
    /// Media type to hints, such as a picture's size.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Names this display for later updates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display_id: Option<String>,
}

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// Which run of code.
    pub execution: ExecutionId,
    /// How it ended.
    pub outcome: Outcome,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// What else has to be known, such as that the workspace is full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
}

/// The ways in which an execution can end. Numbers and names are for programs; the `Display`
/// form is the sentence for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "snake_case")]
pub enum Outcome {
    /// A process ended by itself.
    Exited {
        /// Its exit status.
        code: i32,
    },
    /// A process was ended by a signal that neither the agent nor the kernel's memory killer
    /// sent.
    Signaled {
        /// The signal's number.
        signal: i32,
    },
    /// The process, or the kernel's process, was ended because memory ran out.
    OutOfMemory {
        /// The memory limit in bytes.
        limit_bytes: u64,
    },
    /// The time limit came first.
    TimeLimit {
        /// The limit in milliseconds.
        limit_ms: u64,
        /// Whether the interrupt did not help and the process was killed. A kernel that was
        /// only interrupted keeps its variables.
        killed: bool,
    },
    /// Ended because the caller asked for it.
    Cancelled {
        /// Whether the process was killed; otherwise it was interrupted.
        killed: bool,
    },
    /// A kernel ran the code to its end.
    Succeeded {
        /// The number in `In[n]`.
        execution_count: u32,
    },
    /// A kernel ran the code and an exception reached the top.
    Raised {
        /// The number in `In[n]`.
        execution_count: u32,
        /// The exception's class.
        name: String,
    },
    /// The kernel's process ended in the middle of the execution.
    KernelDied {
        /// How.
        cause: Box<Outcome>,
    },
    /// The kernel said something that is no message; it was ended.
    KernelBroken {
        /// What was wrong, in words.
        what: String,
    },
}

impl Outcome {
    /// Whether the code did what it was meant to do.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        matches!(self, Self::Exited { code: 0 } | Self::Succeeded { .. })
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited { code } => write!(f, "ended with exit status {code}"),
            Self::Signaled { signal } => write!(f, "was ended by {}", signal_name(*signal)),
            Self::OutOfMemory { limit_bytes } => {
                write!(f, "ran out of memory (limit {})", mebibytes(*limit_bytes))
            }
            Self::TimeLimit { limit_ms, killed } => write!(
                f,
                "reached the time limit of {} s and was {}",
                seconds(*limit_ms),
                if *killed { "killed" } else { "interrupted" }
            ),
            Self::Cancelled { killed: true } => f.write_str("was killed on request"),
            Self::Cancelled { killed: false } => f.write_str("was interrupted on request"),
            Self::Succeeded { .. } => f.write_str("ran to its end"),
            Self::Raised { name, .. } => write!(f, "raised {name}"),
            Self::KernelDied { cause } => write!(f, "lost its kernel, which {cause}"),
            Self::KernelBroken { what } => write!(f, "lost its kernel, which {what}"),
        }
    }
}

/// What else has to be known of an execution's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "note", rename_all = "snake_case")]
pub enum Note {
    /// The workspace has no room left, in bytes or in files.
    DiskFull {
        /// The limit in bytes.
        limit_bytes: u64,
        /// The limit in files and folders.
        limit_inodes: u64,
    },
    /// Memory ran out and processes other than the main one were ended for it.
    ChildOutOfMemory {
        /// How many.
        killed: u64,
        /// The memory limit in bytes.
        limit_bytes: u64,
    },
    /// Processes that were left running were ended.
    LeftRunning {
        /// How many.
        processes: u32,
    },
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DiskFull {
                limit_bytes,
                limit_inodes,
            } => write!(
                f,
                "the workspace is full (limit {}, {limit_inodes} files)",
                mebibytes(*limit_bytes)
            ),
            Self::ChildOutOfMemory {
                killed,
                limit_bytes,
            } => write!(
                f,
                "memory ran out and {killed} child process(es) were ended (limit {})",
                mebibytes(*limit_bytes)
            ),
            Self::LeftRunning { processes } => {
                write!(f, "{processes} process(es) left running were ended")
            }
        }
    }
}

/// A size in words, in MiB where that is whole.
#[must_use]
pub fn mebibytes(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    if bytes >= MIB && bytes.is_multiple_of(MIB) {
        format!("{} MiB", bytes / MIB)
    } else {
        format!("{bytes} bytes")
    }
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        (ms / 1000).to_string()
    } else {
        format!("{}.{:03}", ms / 1000, ms % 1000)
    }
}

/// A signal's usual name on Linux, or its number.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {signal}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_survive_json() {
        for bytes in [&b"plain"[..], b"\xff\x00\x1b[2J", b""] {
            let output = Output(Bytes::copy_from_slice(bytes));
            let json = serde_json::to_string(&EventBody::Stdout(output.clone())).unwrap();
            let back: EventBody = serde_json::from_str(&json).unwrap();
            assert_eq!(back, EventBody::Stdout(output));
        }
    }

    #[test]
    fn an_event_is_flat() {
        let event = Event {
            seq: 1,
            at: DateTime::UNIX_EPOCH,
            body: EventBody::Stdout(Output(Bytes::from_static(b"hi\n"))),
        };
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"seq":1,"at":"1970-01-01T00:00:00Z","type":"stdout","data":{"text":"hi\n"}}"#
        );
    }
}
