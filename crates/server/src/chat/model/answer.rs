//! One answer of a model, read as it comes and bounded in bytes and time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use glovebox_client::{Channel, ClientError};
use http::StatusCode;
use http_body_util::Full;
use hyper::body::Incoming;
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

use super::error::{ModelError, Refusal, said_in};
use super::fragments::{Gathered, MAX_CALLS, MAX_SAID, Unusable};
use super::request::ToolCall;
use super::sse::{Events, MAX_EVENT};

/// Most bytes of one answer, with all that is around what is said.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Most bytes of an answer that comes in one piece.
const MAX_WHOLE: usize = 8 * 1024 * 1024;

/// The longest that one answer takes.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// How long more is waited for when the model has said that it is done: servers that neither say
/// `[DONE]` nor close the connection would be silent for ever.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Why a model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// It has said what it had to say, or called tools.
    Stopped,
    /// It reached a limit in the middle.
    Cut,
    /// The endpoint holds the rest back.
    Filtered,
    /// Its stream ended without a word: it has said all, or something between it and here has ended.
    Unmarked,
}

impl Finish {
    pub(super) fn of(word: &str) -> Self {
        match word {
            "length" | "max_tokens" | "model_length" => Self::Cut,
            "content_filter" | "safety" => Self::Filtered,
            _ => Self::Stopped,
        }
    }
}

/// All that a model said in one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// The words.
    pub text: String,
    /// The tools that it calls.
    pub calls: Vec<ToolCall>,
    /// Why it stopped.
    pub finish: Finish,
}

/// An answer that is being read. Dropped it closes the connection, so that the endpoint can stop.
pub struct Answer {
    channel: Channel<Full<Bytes>>,
    body: Incoming,
    form: Form,
    gathered: Gathered,
    /// Text that was not asked for yet.
    ready: VecDeque<String>,
    is_over: bool,
    bytes: usize,
    silence: Duration,
    heard_at: Instant,
    begun_at: Instant,
    model: String,
    key: Option<zeroize::Zeroizing<String>>,
}

/// In which form the answer comes.
enum Form {
    /// Not known before its first byte.
    Unknown(bool),
    Stream(Events),
    Whole(Vec<u8>),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// What an answer is read with.
pub(super) struct Begun {
    pub(super) channel: Channel<Full<Bytes>>,
    pub(super) body: Incoming,
    /// Whether its head says that it is a stream of events.
    pub(super) is_stream: bool,
    pub(super) silence: Duration,
    pub(super) model: String,
    pub(super) key: Option<zeroize::Zeroizing<String>>,
}

impl Answer {
    /// Reads the first bytes of an answer.
    pub(super) async fn begin(begun: Begun) -> Result<Self, ModelError> {
        let now = Instant::now();
        let mut answer = Self {
            channel: begun.channel,
            body: begun.body,
            form: Form::Unknown(begun.is_stream),
            gathered: Gathered::default(),
            ready: VecDeque::new(),
            is_over: false,
            bytes: 0,
            silence: begun.silence,
            heard_at: now,
            begun_at: now,
            model: begun.model,
            key: begun.key,
        };
        match answer.chunk().await? {
            Some(bytes) => answer.take(&bytes)?,
            None => return Err(ModelError::Cut),
        }
        Ok(answer)
    }

    /// Whether it comes as a stream of events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        matches!(self.form, Form::Stream(_))
    }

    /// The text that comes next; nothing at the end. May be dropped while it waits, and asked again.
    ///
    /// # Errors
    /// When the answer breaks off, or is none.
    pub async fn next(&mut self) -> Result<Option<String>, ModelError> {
        loop {
            if let Some(text) = self.ready.pop_front() {
                return Ok(Some(text));
            }
            if self.is_over {
                return Ok(None);
            }
            match self.chunk().await {
                Ok(Some(bytes)) => self.take(&bytes)?,
                Ok(None) => self.end()?,
                // What comes after the end does not matter, and neither does that nothing does.
                Err(_) if self.gathered.is_finished() => self.is_over = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// All that was said, also where the end has not come.
    #[must_use]
    pub fn said(self) -> Said {
        self.gathered.said()
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ModelError> {
        let patience = if self.gathered.is_finished() {
            self.silence.min(LAST_WORDS)
        } else {
            self.silence
        };
        let last = self.begun_at + LONGEST;
        let deadline = last.min(self.heard_at + patience);
        let chunk = timeout_at(deadline, self.channel.chunk(&mut self.body)).await;
        let chunk = chunk.map_err(|_| {
            if deadline == last {
                ModelError::TooSlow {
                    seconds: LONGEST.as_secs(),
                }
            } else {
                ModelError::Silent {
                    seconds: self.silence.as_secs(),
                }
            }
        })?;
        let chunk = chunk.map_err(broken)?;
        self.heard_at = Instant::now();
        self.bytes += chunk.as_ref().map_or(0, Bytes::len);
        if self.bytes > MAX_BYTES {
            return Err(ModelError::TooLong {
                limit_bytes: MAX_BYTES,
            });
        }
        Ok(chunk)
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if let Form::Unknown(is_stream) = self.form {
            let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else {
                return Ok(());
            };
            self.form = match first {
                _ if is_stream => Form::Stream(Events::default()),
                b'{' | b'[' => Form::Whole(Vec::new()),
                b'<' => return Err(ModelError::Malformed { what: "a web page" }),
                _ => Form::Stream(Events::default()),
            };
        }
        match &mut self.form {
            Form::Stream(events) => {
                let events = events.push(bytes).map_err(|_| event_too_long())?;
                self.take_events(events)
            }
            Form::Whole(whole) => {
                if whole.len() + bytes.len() > MAX_WHOLE {
                    return Err(ModelError::TooLong {
                        limit_bytes: MAX_WHOLE,
                    });
                }
                whole.extend_from_slice(bytes);
                Ok(())
            }
            Form::Unknown(_) => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), ModelError> {
        match &mut self.form {
            Form::Stream(events) => {
                let events = events.end().map_err(|_| event_too_long())?;
                self.take_events(events)?;
                if !self.is_over {
                    self.gathered.end_unmarked();
                }
            }
            Form::Whole(whole) => {
                let document = serde_json::from_slice(&std::mem::take(whole));
                let document = document.map_err(|_| ModelError::Cut)?;
                self.take_document(&document)?;
            }
            Form::Unknown(_) => {}
        }
        self.is_over = true;
        if self.gathered.is_begun() {
            Ok(())
        } else {
            Err(ModelError::Cut)
        }
    }

    fn take_events(&mut self, events: Vec<String>) -> Result<(), ModelError> {
        for event in events {
            let event = event.trim();
            if event == "[DONE]" {
                self.is_over = true;
            }
            // Words that some servers send to keep the connection alive are no documents.
            if self.is_over || !event.starts_with('{') {
                continue;
            }
            let document = serde_json::from_str(event).map_err(|_| ModelError::Malformed {
                what: "an event that is no JSON",
            })?;
            self.take_document(&document)?;
        }
        Ok(())
    }

    fn take_document(&mut self, document: &Value) -> Result<(), ModelError> {
        let inner = document.get(0).unwrap_or(document);
        if inner.get("error").is_some_and(|error| !error.is_null()) {
            return Err(ModelError::Refused(Box::new(Refusal {
                status: StatusCode::OK,
                model: self.model.clone(),
                said: said_in(inner, self.key.as_ref().map(|key| key.as_str())),
                retry_after: None,
            })));
        }
        let text = self.gathered.take(document).map_err(|why| match why {
            Unusable::TooMuch => ModelError::TooLong {
                limit_bytes: MAX_SAID,
            },
            Unusable::TooManyCalls => ModelError::TooManyCalls { limit: MAX_CALLS },
            Unusable::Form => ModelError::Malformed {
                what: "something else than a model's answer",
            },
        })?;
        if !text.is_empty() {
            self.ready.push_back(text);
        }
        Ok(())
    }
}

fn event_too_long() -> ModelError {
    ModelError::TooLong {
        limit_bytes: MAX_EVENT,
    }
}

pub(super) fn broken(error: ClientError) -> ModelError {
    ModelError::Broken(Box::new(error))
}
