//! What was said and done before, as a model is told it.

use std::collections::BTreeSet;

use glovebox_protocol::thread::MessageKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::context::shortened_arguments;
use super::prompts::shown;
use super::summary::fenced;
use super::tools::first;
use crate::chat::model::ChatMessage;
use crate::chat::turn::{PastMessage, Speaker};

/// Most characters of one step's code that are remembered.
const MAX_CODE: usize = 2_000;

/// Most characters of one message that are kept.
const MAX_KEPT: usize = 16_000;

/// What is kept of a reply for the next ones.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    /// What the model said, and what it was told.
    #[serde(default)]
    pub(super) messages: Vec<ChatMessage>,
    /// What code did.
    #[serde(default)]
    pub(super) work: Vec<Work>,
}

/// One task that was handed over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Work {
    /// The task.
    pub(super) task: String,
    /// The steps that ran.
    pub(super) steps: Vec<DoneStep>,
}

/// One step that ran.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct DoneStep {
    /// Its code, cut.
    pub(super) code: String,
    /// What came of it, in a line.
    pub(super) outcome: String,
}

impl Kept {
    /// Of a reply that has ended; where it broke off, with what was heard of the last answer.
    pub(super) fn new(
        mut messages: Vec<ChatMessage>,
        work: Vec<Work>,
        broken_off: Option<&str>,
    ) -> Self {
        // A call that was stopped has no result, and models take no call without one.
        let calls = |message: &ChatMessage| match message {
            ChatMessage::Assistant { calls, .. } => calls.len(),
            _ => 0,
        };
        let last = messages.iter().rposition(|one| calls(one) > 0);
        if let Some(at) = last {
            let results = messages[at + 1..].iter();
            let results = results.filter(|one| matches!(one, ChatMessage::Tool { .. }));
            if results.count() < calls(&messages[at]) {
                messages.truncate(at);
            }
        }
        if let Some(heard) = broken_off.filter(|heard| !heard.is_empty()) {
            messages.push(ChatMessage::Assistant {
                text: heard.to_owned(),
                calls: Vec::new(),
            });
        }
        Self { messages, work }
    }

    /// As it is stored.
    pub(super) fn to_json(&self) -> Value {
        let mut kept = Self {
            messages: self.messages.clone(),
            work: self.work.clone(),
        };
        for message in &mut kept.messages {
            if let ChatMessage::Assistant { text, .. }
            | ChatMessage::Tool { text, .. }
            | ChatMessage::User { text } = message
            {
                *text = first(text, MAX_KEPT);
            }
            let calls = match message {
                ChatMessage::Assistant { calls, .. } => calls.as_mut_slice(),
                ChatMessage::Tool { call, .. } => std::slice::from_mut(call),
                ChatMessage::System { .. } | ChatMessage::User { .. } => &mut [],
            };
            for call in calls {
                if call.arguments.len() > MAX_KEPT {
                    call.arguments = shortened_arguments(&call.arguments, MAX_KEPT);
                }
            }
        }
        serde_json::to_value(&kept).unwrap_or_default()
    }

    /// What an earlier reply has kept. What cannot be read counts as nothing.
    fn of(message: &PastMessage) -> Self {
        Self::deserialize(&message.turns).unwrap_or_default()
    }
}

impl Work {
    pub(super) fn new(task: &str) -> Self {
        Self {
            task: task.to_owned(),
            steps: Vec::new(),
        }
    }

    /// Remembers a step.
    pub(super) fn done(&mut self, code: &str, outcome: String) {
        self.steps.push(DoneStep {
            code: first(code, MAX_CODE),
            outcome,
        });
    }
}

/// What code did in earlier replies.
pub(super) fn earlier_work(history: &[PastMessage]) -> Vec<Work> {
    let of = |message: &PastMessage| Kept::of(message).work;
    history.iter().flat_map(of).collect()
}

/// The conversation so far. Some models take no two messages of one side in a row.
pub(super) fn told(history: &[PastMessage]) -> Vec<ChatMessage> {
    let authors: BTreeSet<_> = history
        .iter()
        .filter_map(|message| message.author.as_ref())
        .map(|author| &author.name)
        .collect();
    let mut told = Vec::new();
    for message in history {
        for one in messages(message, authors.len() > 1) {
            join(&mut told, one);
        }
    }
    told
}

fn messages(message: &PastMessage, is_several: bool) -> Vec<ChatMessage> {
    match (message.role, message.kind) {
        (Speaker::User, kind) => {
            let author = message.author.as_ref().filter(|_| is_several);
            let by =
                author.map_or_else(String::new, |author| format!("[{}] ", shown(&author.name)));
            let mut text = match kind {
                MessageKind::Text => format!("{by}{}", message.text),
                MessageKind::Code => {
                    format!(
                        "{by}I ran this Python myself:\n{}",
                        fenced("code", &message.text)
                    )
                }
            };
            if !message.attachments.is_empty() {
                let names: Vec<_> = message
                    .attachments
                    .iter()
                    .map(|file| shown(&file.name))
                    .collect();
                text.push_str(&format!("\n\n(Attached: {})", names.join(", ")));
            }
            vec![ChatMessage::User { text }]
        }
        (Speaker::Assistant, MessageKind::Code) => vec![ChatMessage::Assistant {
            text: format!("What came of it:\n{}", fenced("its outcome", &message.text)),
            calls: Vec::new(),
        }],
        (Speaker::Assistant, MessageKind::Text) => {
            let mut kept = Kept::of(message).messages;
            let is_answered = matches!(kept.last(), Some(ChatMessage::Assistant { .. }));
            if !is_answered {
                let text = if message.text.is_empty() || !kept.is_empty() {
                    "(This reply ended early.)".into()
                } else {
                    message.text.clone()
                };
                let calls = Vec::new();
                kept.push(ChatMessage::Assistant { text, calls });
            }
            kept
        }
    }
}

/// Adds a message, to the last one where the same side said it.
fn join(told: &mut Vec<ChatMessage>, message: ChatMessage) {
    match (told.last_mut(), message) {
        (Some(ChatMessage::User { text }), ChatMessage::User { text: more }) => {
            text.push_str("\n\n");
            text.push_str(&more);
        }
        (
            Some(ChatMessage::Assistant { text, calls }),
            ChatMessage::Assistant {
                text: more,
                calls: more_calls,
            },
        ) if calls.is_empty() => {
            text.push_str("\n\n");
            text.push_str(&more);
            *calls = more_calls;
        }
        (_, message) => told.push(message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::model::ToolCall;

    fn past(role: Speaker, kind: MessageKind, text: &str, turns: Value) -> PastMessage {
        PastMessage {
            role,
            kind,
            text: text.into(),
            attachments: Vec::new(),
            author: None,
            turns,
        }
    }

    fn call() -> ToolCall {
        ToolCall {
            id: "a".into(),
            name: "code_execution".into(),
            arguments: "{}".into(),
            is_legacy: false,
        }
    }

    #[test]
    fn a_conversation_goes_on_where_it_was() {
        let assistant = |text: &str, calls: Vec<ToolCall>| ChatMessage::Assistant {
            text: text.into(),
            calls,
        };
        let said = vec![
            assistant("", vec![call()]),
            ChatMessage::Tool {
                call: call(),
                text: "7".into(),
            },
            assistant("It is 7.", Vec::new()),
        ];
        let mut work = Work::new("sum");
        work.done("x = 7", "succeeded".into());
        let kept = Kept::new(said.clone(), vec![work], None);
        let history = [
            past(Speaker::User, MessageKind::Text, "sum?", Value::Null),
            past(
                Speaker::Assistant,
                MessageKind::Text,
                "It is 7.",
                kept.to_json(),
            ),
            past(Speaker::User, MessageKind::Code, "x", Value::Null),
            past(Speaker::Assistant, MessageKind::Code, "7", Value::Null),
            past(Speaker::User, MessageKind::Text, "lost", Value::Null),
            past(
                Speaker::Assistant,
                MessageKind::Text,
                "",
                Value::from("rubbish"),
            ),
            past(Speaker::User, MessageKind::Text, "and now?", Value::Null),
        ];
        let told = told(&history);
        assert_eq!(told[1..4], said);
        assert!(
            matches!(&told[4], ChatMessage::User { text } if text.contains("I ran this Python"))
        );
        assert!(
            matches!(&told[7], ChatMessage::Assistant { text, .. } if text.contains("ended early"))
        );
        assert_eq!(told.len(), 9);
        assert_eq!(earlier_work(&history)[0].steps[0].code, "x = 7");
    }

    #[test]
    fn what_was_stopped_in_a_call_is_no_call_any_more() {
        let call = || ChatMessage::Assistant {
            text: "I look.".into(),
            calls: vec![call()],
        };
        let kept = Kept::new(vec![call()], Vec::new(), None);
        assert_eq!(kept.to_json()["messages"], Value::Array(Vec::new()));
        // What people have heard of it is told to the model, too.
        let kept = Kept::new(vec![call()], Vec::new(), Some("I look."));
        let history = [
            past(Speaker::User, MessageKind::Text, "sum?", Value::Null),
            past(
                Speaker::Assistant,
                MessageKind::Text,
                "I look.",
                kept.to_json(),
            ),
        ];
        let heard = ChatMessage::Assistant {
            text: "I look.".into(),
            calls: Vec::new(),
        };
        assert_eq!(told(&history).last(), Some(&heard));
    }

    #[test]
    fn what_is_said_after_a_call_is_kept_where_it_breaks_off() {
        let said = vec![
            ChatMessage::Assistant {
                text: "I look.".into(),
                calls: vec![call()],
            },
            ChatMessage::Tool {
                call: call(),
                text: "7".into(),
            },
        ];
        let kept = Kept::new(said.clone(), Vec::new(), Some("The sum is"));
        let body = "I look.\n\nThe sum is";
        let past = past(Speaker::Assistant, MessageKind::Text, body, kept.to_json());
        let told = told(&[past]);
        assert_eq!(told[..2], said);
        assert!(matches!(&told[2], ChatMessage::Assistant { text, .. } if text == "The sum is"));
        assert_eq!(told.len(), 3);
    }

    #[test]
    fn of_a_call_no_more_is_kept_than_of_a_message() {
        let mut long = call();
        long.arguments = serde_json::json!({ "task": "x".repeat(1 << 20) }).to_string();
        let said = ChatMessage::Assistant {
            text: String::new(),
            calls: vec![long.clone()],
        };
        let result = ChatMessage::Tool {
            call: long,
            text: "done".into(),
        };
        let kept = Kept::new(vec![said, result], Vec::new(), None).to_json();
        assert!(
            kept.to_string().len() < 3 * MAX_KEPT,
            "{}",
            kept.to_string().len()
        );
        let arguments = kept["messages"][0].to_string();
        assert!(arguments.contains("characters left out"), "{arguments}");
    }
}
