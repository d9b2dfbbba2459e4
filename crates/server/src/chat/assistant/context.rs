//! Keeps a conversation within what a model can read.
//!
//! Tokens are estimated, as every model counts them otherwise. What goes first is what is easiest
//! to have again: results of tools, then the oldest rounds.

use serde_json::{Map, Value};

use super::tools::first;
use crate::chat::model::{ChatMessage, ModelEndpoint, Tool};

/// How many results of tools are left as they are, from the newest.
const NEWEST: usize = 2;

/// What a result or code is shortened to at first, in characters.
const SHORT: usize = 400;

/// Tokens around every message.
const AROUND: usize = 8;

/// A conversation that is to fit a model.
pub(super) struct Context {
    messages: Vec<ChatMessage>,
    /// How many of the first messages always stay.
    fixed: usize,
    /// One more that always stays.
    pinned: Option<usize>,
    budget: usize,
}

/// How many tokens a text has, guessed on the safe side: a token is about four letters of English,
/// less of code and figures, and about one character of most other scripts.
pub(super) fn estimate(text: &str) -> usize {
    let ascii = text.bytes().filter(u8::is_ascii).count();
    let others = text.chars().count() - ascii;
    ascii.div_ceil(3) + others
}

fn weight(message: &ChatMessage) -> usize {
    let words = match message {
        ChatMessage::System { text } | ChatMessage::User { text } => estimate(text),
        ChatMessage::Assistant { text, calls } => {
            let calls = calls.iter();
            let calls = calls.map(|call| estimate(&call.arguments) + estimate(&call.name) + AROUND);
            estimate(text) + calls.sum::<usize>()
        }
        ChatMessage::Tool { text, .. } => estimate(text),
    };
    words + AROUND
}

impl Context {
    /// A conversation with nothing in it. The first `fixed` messages always stay.
    pub(super) fn new(endpoint: &ModelEndpoint, tools: &[Tool], fixed: usize) -> Self {
        let size = usize::try_from(endpoint.context_tokens).unwrap_or(usize::MAX);
        // Room for the answer.
        let answer = (size / 4).min(4_096);
        let tools: usize = tools
            .iter()
            .map(|tool| estimate(tool.description) + estimate(&tool.parameters.to_string()))
            .sum();
        Self {
            messages: Vec::new(),
            fixed,
            pinned: None,
            budget: size.saturating_sub(answer + tools),
        }
    }

    pub(super) fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    pub(super) fn push(&mut self, message: ChatMessage) {
        self.messages.push(message);
    }

    pub(super) fn extend(&mut self, messages: impl IntoIterator<Item = ChatMessage>) {
        self.messages.extend(messages);
    }

    /// What was added last always stays: without the question an answer is none.
    pub(super) fn pin_last(&mut self) {
        self.pinned = self.messages.len().checked_sub(1);
    }

    /// The model could read less than was thought. Gives what is thought now.
    pub(super) fn shrink(&mut self) -> usize {
        let budget = self.budget.min(self.weight()) / 2;
        self.fit(budget);
        budget
    }

    fn weight(&self) -> usize {
        self.messages.iter().map(weight).sum()
    }

    fn fits(&self) -> bool {
        self.weight() <= self.budget
    }

    /// Makes it shorter until it fits the model and has no more than `most` tokens, or nothing is
    /// left to shorten.
    pub(super) fn fit(&mut self, most: usize) {
        self.budget = self.budget.min(most);
        self.shorten_results(NEWEST);
        while !self.fits() && self.drop_oldest() {}
        // What is left is the newest round: better a part of it than nothing.
        self.shorten_results(0);
        let mut most = 16_000;
        while !self.fits() && most >= 500 {
            for message in self.messages.iter_mut().skip(1) {
                if let ChatMessage::User { text }
                | ChatMessage::Assistant { text, .. }
                | ChatMessage::Tool { text, .. } = message
                {
                    *text = shortened(text, most);
                }
            }
            most /= 2;
        }
    }

    /// Shortens results and code of tools from the oldest, but the `newest` results.
    fn shorten_results(&mut self, newest: usize) {
        let is_result = |message: &ChatMessage| matches!(message, ChatMessage::Tool { .. });
        let results = self.messages.iter().filter(|one| is_result(one)).count();
        let mut left = results.saturating_sub(newest);
        for at in self.fixed..self.messages.len() {
            if self.fits() || left == 0 {
                return;
            }
            match &mut self.messages[at] {
                ChatMessage::Tool { text, .. } => {
                    left -= 1;
                    *text = shortened(text, SHORT);
                }
                ChatMessage::Assistant { calls, .. } => {
                    for call in calls {
                        call.arguments = shortened_arguments(&call.arguments, SHORT);
                    }
                }
                _ => {}
            }
        }
    }

    /// Drops the oldest round: what was said, and all that came of it. The newest stays, and so does
    /// the pinned one.
    fn drop_oldest(&mut self) -> bool {
        let begins = |at: &usize| !matches!(self.messages[*at], ChatMessage::Tool { .. });
        let mut starts = (self.fixed..self.messages.len())
            .filter(begins)
            .skip_while(|at| self.pinned == Some(*at));
        let (Some(first), Some(second)) = (starts.next(), starts.next()) else {
            return false;
        };
        self.messages.drain(first..second);
        self.pinned = self.pinned.map(|at| {
            if at >= second {
                at - (second - first)
            } else {
                at
            }
        });
        true
    }
}

/// The beginning and the end of a text that is too long.
fn shortened(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most + 40 {
        return text.to_owned();
    }
    let half = most / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(count - half).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        count - 2 * half
    )
}

/// Arguments whose long texts are shortened: they stay an object.
pub(super) fn shortened_arguments(arguments: &str, most: usize) -> String {
    let Ok(mut object) = serde_json::from_str::<Map<String, Value>>(arguments) else {
        return first(arguments, most);
    };
    for value in object.values_mut() {
        if let Value::String(text) = value {
            *text = shortened(text, most);
        }
    }
    Value::Object(object).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::model::ToolCall;

    fn context(budget: usize) -> Context {
        Context {
            messages: Vec::new(),
            fixed: 2,
            pinned: None,
            budget,
        }
    }

    fn round(number: usize) -> [ChatMessage; 2] {
        let call = ToolCall {
            id: number.to_string(),
            name: "run_python".into(),
            arguments: serde_json::json!({ "code": "x = 1\n".repeat(300), "plan": "p" })
                .to_string(),
            is_legacy: false,
        };
        [
            ChatMessage::Assistant {
                text: format!("round {number}"),
                calls: vec![call.clone()],
            },
            ChatMessage::Tool {
                call,
                text: format!("begin {number} {} end {number}", "figures ".repeat(500)),
            },
        ]
    }

    fn filled(budget: usize) -> Context {
        let mut context = context(budget);
        context.push(ChatMessage::System { text: "be".into() });
        context.push(ChatMessage::User {
            text: "the task".into(),
        });
        context.extend((0..10).flat_map(round));
        context
    }

    /// Each result follows the call that it belongs to, and nothing stands alone.
    fn is_valid(context: &Context) -> bool {
        let mut open: Vec<&ToolCall> = Vec::new();
        context.messages().iter().all(|message| match message {
            ChatMessage::Tool { call, .. } => {
                let found = open.iter().position(|one| one.id == call.id);
                found.map(|at| open.remove(at)).is_some()
            }
            ChatMessage::Assistant { calls, .. } => {
                let is_answered = open.is_empty();
                open = calls.iter().collect();
                is_answered
                    && calls.iter().all(|call| {
                        serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok()
                    })
            }
            _ => open.is_empty(),
        })
    }

    #[test]
    fn what_fits_is_left_as_it_is() {
        let mut context = filled(1_000_000);
        let before = context.messages().to_vec();
        context.fit(usize::MAX);
        assert_eq!(context.messages(), before);
    }

    #[test]
    fn older_results_are_shortened_first_and_rounds_dropped_then() {
        let mut context = filled(8_000);
        context.fit(usize::MAX);
        assert!(context.fits() && is_valid(&context));
        assert_eq!(context.messages().len(), 22, "nothing had to be dropped");
        let text = |at: usize| match &context.messages()[at] {
            ChatMessage::Tool { text, .. } => text.as_str(),
            other => panic!("{other:?}"),
        };
        assert!(text(3).contains("characters left out") && text(3).ends_with("end 0"));
        assert!(text(21).len() > 4_000, "the newest result is whole");
        for budget in [4_000, 2_000, 1_000, 600] {
            let mut context = filled(budget);
            context.fit(usize::MAX);
            assert!(context.fits() && is_valid(&context), "{budget}");
            assert!(
                matches!(&context.messages()[1], ChatMessage::User { text } if text == "the task")
            );
            let last = context.messages().last().unwrap();
            assert!(matches!(last, ChatMessage::Tool { text, .. } if text.contains("end 9")));
        }
    }

    #[test]
    fn the_question_stays_however_little_a_model_can_read() {
        for budget in [8_000, 4_000, 2_000, 1_000] {
            let mut context = Context {
                fixed: 1,
                ..context(budget)
            };
            context.push(ChatMessage::System { text: "be".into() });
            context.extend((0..3).flat_map(|number| {
                let before = format!("question {number}");
                let asked = ChatMessage::User { text: before };
                std::iter::once(asked).chain(round(number))
            }));
            context.push(ChatMessage::User {
                text: "the question".into(),
            });
            context.pin_last();
            context.extend((10..13).flat_map(round));
            context.fit(usize::MAX);
            assert!(context.fits() && is_valid(&context), "{budget}");
            let questions: Vec<_> = context
                .messages()
                .iter()
                .filter(|one| matches!(one, ChatMessage::User { .. }))
                .collect();
            let last = questions.last();
            assert!(
                matches!(last, Some(ChatMessage::User { text }) if text == "the question"),
                "{budget}: {questions:?}"
            );
            let newest = context.messages().last().unwrap();
            assert!(matches!(newest, ChatMessage::Tool { text, .. } if text.contains("end 12")));
        }
    }

    #[test]
    fn one_message_that_is_too_long_is_cut() {
        let mut context = context(2_000);
        context.push(ChatMessage::System { text: "be".into() });
        context.push(ChatMessage::User {
            text: format!("begin {} end", "word ".repeat(50_000)),
        });
        context.fit(usize::MAX);
        assert!(context.fits());
        let ChatMessage::User { text } = &context.messages()[1] else {
            panic!("it is gone")
        };
        assert!(text.starts_with("begin") && text.ends_with("end"));
        let before = context.weight();
        context.shrink();
        assert!(context.weight() < before);
    }

    #[test]
    fn tokens_are_not_underestimated() {
        assert!(estimate("the quick brown fox jumps over the lazy dog") >= 9);
        assert!(estimate("世界世界") >= 4);
        assert_eq!(estimate(""), 0);
    }
}
