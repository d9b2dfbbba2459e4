//! What a kernel says, and which event it becomes.

use glovebox_protocol::event::{EventBody, Shown};
use glovebox_protocol::ids::ExecutionId;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest piece of an error's name, text or traceback that is passed on, in bytes.
const MAX_ERROR_TEXT: usize = 16 * 1024;

/// Most entries of a traceback that are passed on.
const MAX_TRACEBACK: usize = 64;

/// One message.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromKernel {
    /// It takes code.
    Ready { language: String },
    Display {
        seq: u64,
        id: ExecutionId,
        #[serde(flatten)]
        shown: Bundle,
    },
    UpdateDisplay {
        seq: u64,
        id: ExecutionId,
        #[serde(flatten)]
        shown: Bundle,
    },
    ClearOutput {
        seq: u64,
        id: ExecutionId,
        wait: bool,
    },
    Result {
        id: ExecutionId,
        execution_count: Value,
        #[serde(flatten)]
        shown: Bundle,
    },
    Error {
        id: ExecutionId,
        ename: String,
        evalue: String,
        traceback: Vec<String>,
    },
    /// Ends a call.
    Reply {
        id: ExecutionId,
        status: Status,
        execution_count: Value,
        /// Whether the code asked the kernel to end, which it does after this.
        #[serde(default)]
        ending: bool,
    },
}

/// How a call went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Ok,
    Error,
    Aborted,
}

/// Something to show in several forms.
#[derive(Debug, Deserialize)]
pub(crate) struct Bundle {
    data: Map<String, Value>,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default)]
    transient: Map<String, Value>,
}

impl Bundle {
    /// Its plain text, if it has one.
    pub(crate) fn text(&self) -> Option<&str> {
        self.data.get("text/plain")?.as_str()
    }
}

impl From<Bundle> for Shown {
    fn from(bundle: Bundle) -> Self {
        let display_id = bundle.transient.get("display_id").and_then(Value::as_str);
        Self {
            display_id: display_id.map(String::from),
            data: bundle.data,
            metadata: bundle.metadata,
        }
    }
}

/// A message whose content has too many parts to be taken in: its name and numbers. A plain
/// struct, because reading it passes over everything else without keeping it.
#[derive(Debug, Deserialize)]
pub(crate) struct Slim {
    r#type: SlimType,
    #[serde(default)]
    seq: u64,
    id: ExecutionId,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SlimType {
    Display,
    UpdateDisplay,
    Result,
}

impl Slim {
    /// The message with a word in place of its content.
    pub(crate) fn without_content(self) -> FromKernel {
        let Self { r#type, seq, id } = self;
        let text = "(a value of more than 250 000 parts, or more than 64 levels deep, which is not passed on)";
        let shown = Bundle {
            data: Map::from_iter([("text/plain".into(), text.into())]),
            metadata: Map::new(),
            transient: Map::new(),
        };
        match r#type {
            SlimType::Display => FromKernel::Display { seq, id, shown },
            SlimType::UpdateDisplay => FromKernel::UpdateDisplay { seq, id, shown },
            SlimType::Result => FromKernel::Result {
                id,
                execution_count: Value::Null,
                shown,
            },
        }
    }
}

impl FromKernel {
    /// The call it belongs to; none for the one message that comes before all calls.
    pub(crate) const fn execution(&self) -> Option<ExecutionId> {
        match self {
            Self::Ready { .. } => None,
            Self::Display { id, .. }
            | Self::UpdateDisplay { id, .. }
            | Self::ClearOutput { id, .. }
            | Self::Result { id, .. }
            | Self::Error { id, .. }
            | Self::Reply { id, .. } => Some(*id),
        }
    }

    /// The number that it is to be acknowledged with.
    pub(crate) const fn seq(&self) -> Option<u64> {
        match self {
            Self::Display { seq, .. }
            | Self::UpdateDisplay { seq, .. }
            | Self::ClearOutput { seq, .. } => Some(*seq),
            _ => None,
        }
    }

    /// What the caller gets to see of it.
    pub(crate) fn into_event(self) -> Option<EventBody> {
        match self {
            Self::Display { shown, .. } => Some(EventBody::Display(shown.into())),
            Self::UpdateDisplay { shown, .. } => Some(EventBody::UpdateDisplay(shown.into())),
            Self::ClearOutput { wait, .. } => Some(EventBody::ClearOutput { wait }),
            Self::Result {
                execution_count,
                shown,
                ..
            } => Some(EventBody::Result {
                execution_count: count(&execution_count),
                shown: shown.into(),
            }),
            Self::Error {
                ename,
                evalue,
                mut traceback,
                ..
            } => {
                // The end of a traceback says what happened.
                let superfluous = traceback.len().saturating_sub(MAX_TRACEBACK);
                traceback.drain(..superfluous);
                Some(EventBody::Error {
                    name: clip(ename),
                    value: clip(evalue),
                    traceback: traceback.into_iter().map(clip).collect(),
                })
            }
            Self::Ready { .. } | Self::Reply { .. } => None,
        }
    }
}

/// A cell's number. User code can set it to anything.
pub(crate) fn count(value: &Value) -> u32 {
    let number = value.as_u64().unwrap_or(0);
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Cuts text that nobody would read to its end.
fn clip(mut text: String) -> String {
    if text.len() > MAX_ERROR_TEXT {
        let mut end = MAX_ERROR_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let dropped = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… ({dropped} more bytes)"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hostile_number_does_no_harm() {
        for (value, number) in [
            ("-1", 0),
            ("1e300", 0),
            ("4294967296", u32::MAX),
            ("null", 0),
        ] {
            assert_eq!(count(&serde_json::from_str(value).unwrap()), number);
        }
    }

    #[test]
    fn a_long_error_is_cut_between_characters() {
        let text = clip("\u{e9}".repeat(MAX_ERROR_TEXT));
        assert!(text.len() < MAX_ERROR_TEXT + 100, "{}", text.len());
        assert!(text.ends_with("more bytes)"));
    }

    #[test]
    fn json_that_is_nested_too_deeply_is_refused() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let json = format!(r#"{{"type":"display","seq":1,"data":{{"a":{deep}}}}}"#);
        assert!(serde_json::from_str::<FromKernel>(&json).is_err());
    }

    proptest! {
        #[test]
        fn no_json_makes_parsing_panic(json in "\\PC{0,200}") {
            let _ = serde_json::from_str::<FromKernel>(&json);
        }
    }
}
