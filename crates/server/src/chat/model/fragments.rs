//! Puts together what a model says in pieces, whichever parts of the form the server leaves out.

use serde_json::Value;

use super::answer::{Finish, Said};
use super::request::ToolCall;

/// Most calls of tools in one answer; more are no answer that makes sense.
pub(super) const MAX_CALLS: usize = 32;

/// Most bytes of all text and all arguments of one answer.
pub(super) const MAX_SAID: usize = 1024 * 1024;

/// Longest id of a call that is kept, in bytes: it goes back with every later question.
const MAX_ID: usize = 512;

/// How much of a tool's name is kept, in bytes; ours are shorter.
const MAX_NAME: usize = 64;

/// One document of an answer is not what it has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unusable {
    /// It has more calls than [`MAX_CALLS`].
    TooManyCalls,
    /// Its text and arguments are longer than [`MAX_SAID`].
    TooMuch,
    /// It is of no form that is known.
    Form,
}

/// What was said so far.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    text: String,
    calls: Vec<Fragment>,
    finish: Option<Finish>,
    bytes: usize,
}

/// A call that is still being said.
#[derive(Debug, Default)]
struct Fragment {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    is_legacy: bool,
}

impl Gathered {
    /// Takes one document of a stream, or the one document of an answer that is none. Gives the
    /// text that is new.
    pub(super) fn take(&mut self, document: &Value) -> Result<String, Unusable> {
        if !document.is_object() {
            return Err(Unusable::Form);
        }
        let Some(choice) = choice(document) else {
            // Counts of tokens, and what else some servers tell on the way.
            return Ok(String::new());
        };
        if let Some(word) = choice.get("finish_reason").and_then(Value::as_str) {
            self.finish = Some(Finish::of(word));
        }
        let message = ["delta", "message"]
            .into_iter()
            .find_map(|name| choice.get(name).filter(|value| value.is_object()));
        let mut text = String::new();
        match message {
            Some(message) => {
                content(message.get("content"), &mut text);
                self.take_calls(message)?;
            }
            // Servers from before there was chat.
            None => content(choice.get("text"), &mut text),
        }
        self.count(text.len())?;
        self.text.push_str(&text);
        Ok(text)
    }

    /// Whether anything was said, or it was said that nothing is.
    pub(super) fn is_begun(&self) -> bool {
        !self.text.is_empty() || !self.calls.is_empty() || self.finish.is_some()
    }

    /// Whether the model has said that it is done.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Nothing more comes. Where something was said and not that it is all, that is noted.
    pub(super) fn end_unmarked(&mut self) {
        if self.is_begun() {
            self.finish.get_or_insert(Finish::Unmarked);
        }
    }

    /// All that was said.
    pub(super) fn said(self) -> Said {
        let calls = self
            .calls
            .into_iter()
            .enumerate()
            .map(|(place, call)| ToolCall {
                id: if call.id.is_empty() {
                    // Nine letters and digits: one maker's servers take no others.
                    format!("call{:05}", place + 1)
                } else {
                    call.id
                },
                name: call.name,
                arguments: if call.arguments.trim().is_empty() {
                    "{}".into()
                } else {
                    call.arguments
                },
                is_legacy: call.is_legacy,
            });
        Said {
            text: self.text,
            calls: calls.collect(),
            finish: self.finish.unwrap_or(Finish::Stopped),
        }
    }

    fn count(&mut self, bytes: usize) -> Result<(), Unusable> {
        self.bytes += bytes;
        if self.bytes > MAX_SAID {
            return Err(Unusable::TooMuch);
        }
        Ok(())
    }

    fn take_calls(&mut self, message: &Value) -> Result<(), Unusable> {
        match message.get("tool_calls") {
            Some(Value::Array(calls)) => {
                for call in calls {
                    self.take_call(call)?;
                }
            }
            Some(call @ Value::Object(_)) => self.take_call(call)?,
            _ => {}
        }
        if let Some(call @ Value::Object(_)) = message.get("function_call") {
            let name = call.get("name").and_then(Value::as_str).unwrap_or_default();
            let at = match self.calls.last() {
                Some(last) if last.is_legacy => self.calls.len() - 1,
                _ => self.new_call(Fragment {
                    is_legacy: true,
                    ..Fragment::default()
                })?,
            };
            self.add(at, name, call.get("arguments"))?;
        }
        Ok(())
    }

    fn take_call(&mut self, call: &Value) -> Result<(), Unusable> {
        let function = call.get("function").filter(|value| value.is_object());
        let function = function.unwrap_or(call);
        let word = |value: &Value, name| {
            let found: Option<&Value> = Value::get(value, name);
            found.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let (mut id, name) = (word(call, "id"), word(function, "name"));
        if id.len() > MAX_ID {
            // It gets one of ours, as a call without.
            id.clear();
        }
        let index = call.get("index").and_then(Value::as_u64);
        let at = match self.place(index, &id, &name) {
            Some(at) => at,
            None => self.new_call(Fragment {
                index,
                id: id.clone(),
                ..Fragment::default()
            })?,
        };
        if self.calls[at].id.is_empty() {
            self.calls[at].id = id;
        }
        self.add(at, &name, function.get("arguments"))
    }

    /// Which call a fragment goes on with; nothing where it begins another.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let is_other = |call: &Fragment| !id.is_empty() && !call.id.is_empty() && call.id != id;
        if !id.is_empty()
            && let Some(at) = self.calls.iter().position(|call| call.id == id)
        {
            return Some(at);
        }
        if index.is_some() {
            // Some servers number every call 0: then the ids tell them apart.
            let at = self.calls.iter().rposition(|call| call.index == index)?;
            return (!is_other(&self.calls[at])).then_some(at);
        }
        let last = self.calls.last()?;
        let begins =
            is_other(last) || !name.is_empty() && (last.name != name || is_whole(&last.arguments));
        (!begins).then(|| self.calls.len() - 1)
    }

    fn new_call(&mut self, call: Fragment) -> Result<usize, Unusable> {
        if self.calls.len() == MAX_CALLS {
            return Err(Unusable::TooManyCalls);
        }
        self.count(call.id.len())?;
        self.calls.push(call);
        Ok(self.calls.len() - 1)
    }

    fn add(&mut self, at: usize, name: &str, arguments: Option<&Value>) -> Result<(), Unusable> {
        let more = match arguments {
            Some(Value::String(text)) => text.clone(),
            // An object that should have been a text.
            Some(value @ (Value::Object(_) | Value::Array(_))) => value.to_string(),
            _ => String::new(),
        };
        self.count(name.len() + more.len())?;
        let call = &mut self.calls[at];
        // Some servers repeat the name with every fragment, a few send it in pieces.
        if call.name != name && call.arguments.is_empty() {
            let room = MAX_NAME.saturating_sub(call.name.len());
            call.name.push_str(&name[..name.floor_char_boundary(room)]);
        }
        call.arguments.push_str(&more);
        Ok(())
    }
}

/// The one answer that was asked for.
fn choice(document: &Value) -> Option<&Value> {
    let choices = document.get("choices")?.as_array()?;
    choices
        .iter()
        .find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0)
}

/// Text, or a list of parts of which some are text.
fn content(value: Option<&Value>, text: &mut String) {
    match value {
        Some(Value::String(part)) => text.push_str(part),
        Some(Value::Array(parts)) => {
            for part in parts {
                match part.get("text") {
                    Some(Value::String(part)) => text.push_str(part),
                    _ => text.push_str(part.as_str().unwrap_or_default()),
                }
            }
        }
        _ => {}
    }
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn gather(deltas: &[Value]) -> Said {
        let mut gathered = Gathered::default();
        for delta in deltas {
            let document = json!({ "choices": [{ "delta": delta }] });
            gathered.take(&document).unwrap();
        }
        gathered.said()
    }

    fn calls(deltas: &[Value]) -> Vec<(String, String, String)> {
        let said = gather(deltas);
        said.calls
            .into_iter()
            .map(|call| (call.id, call.name, call.arguments))
            .collect()
    }

    fn one(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    #[test]
    fn calls_in_fragments_are_put_together() {
        let fragments = [
            json!({ "role": "assistant", "content": null, "tool_calls": [{ "index": 0, "id": "a",
                "type": "function", "function": { "name": "run", "arguments": "" } }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{\"x\"" } }] }),
            json!({ "tool_calls": [{ "index": 1, "id": "b", "function":
                { "name": "list", "arguments": "{" } }] }),
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": ":1}" } }] }),
            json!({ "tool_calls": [{ "index": 1, "function": { "arguments": "}" } }] }),
        ];
        let expected = [one("a", "run", "{\"x\":1}"), one("b", "list", "{}")];
        assert_eq!(calls(&fragments), expected);
        // The same without numbers, one after the other.
        let bare = [
            json!({ "tool_calls": [{ "id": "a", "function": { "name": "run" } }] }),
            json!({ "tool_calls": [{ "function": { "arguments": "{\"x\":" } }] }),
            json!({ "tool_calls": [{ "function": { "name": "run", "arguments": "1}" } }] }),
            json!({ "tool_calls": [{ "id": "b", "function": { "name": "list" } }] }),
        ];
        assert_eq!(calls(&bare), expected);
        // And without ids.
        let nameless = [
            json!({ "tool_calls": [{ "function": { "name": "run", "arguments": "{\"x\":1}" } }] }),
            json!({ "tool_calls": [{ "function": { "name": "run", "arguments": "{\"x\":2}" } }] }),
        ];
        assert_eq!(
            calls(&nameless),
            [
                one("call00001", "run", "{\"x\":1}"),
                one("call00002", "run", "{\"x\":2}")
            ]
        );
    }

    #[test]
    fn whole_calls_are_taken_in_whatever_form() {
        let object = json!({ "tool_calls": [
            { "index": 0, "id": "a", "function": { "name": "run", "arguments": { "x": 1 } } },
            { "index": 0, "id": "b", "function": { "name": "list", "arguments": null } }] });
        let expected = [one("a", "run", "{\"x\":1}"), one("b", "list", "{}")];
        assert_eq!(calls(&[object]), expected);
        let flat = json!({ "tool_calls": { "id": "a", "name": "run", "arguments": "{\"x\":1}" } });
        assert_eq!(calls(&[flat]), expected[..1]);
        let legacy = [
            json!({ "function_call": { "name": "run", "arguments": "{\"x\"" } }),
            json!({ "function_call": { "arguments": ":1}" } }),
        ];
        let said = gather(&legacy);
        assert_eq!(said.calls.len(), 1);
        assert!(said.calls[0].is_legacy);
        assert_eq!(said.calls[0].arguments, "{\"x\":1}");
    }

    #[test]
    fn text_is_found_wherever_it_stands() {
        let mut gathered = Gathered::default();
        for document in [
            json!({ "choices": [{ "delta": { "content": "a" } }] }),
            json!({ "choices": [{ "index": 1, "delta": { "content": "other" } }] }),
            json!({ "choices": [] }),
            json!({ "usage": { "total_tokens": 1 } }),
            json!({ "choices": [{ "delta": { "content": [{ "type": "text", "text": "b" }] } }] }),
            json!({ "choices": [{ "delta": { "content": null, "reasoning_content": "hm" } }] }),
            json!({ "choices": [{ "message": { "content": "c" }, "delta": null }] }),
            json!({ "choices": [{ "text": "d", "finish_reason": "length" }] }),
        ] {
            gathered.take(&document).unwrap();
        }
        assert!(gathered.is_finished());
        let said = gathered.said();
        assert_eq!((said.text.as_str(), said.finish), ("abcd", Finish::Cut));
    }

    #[test]
    fn what_makes_no_sense_is_refused_and_bounded() {
        let mut gathered = Gathered::default();
        assert_eq!(gathered.take(&json!("x")), Err(Unusable::Form));
        let call = |n: usize| {
            json!({ "choices": [{ "delta": { "tool_calls": [
                { "id": n.to_string(), "function": { "name": "x" } }] } }] })
        };
        let taken = (0..100).take_while(|n| gathered.take(&call(*n)).is_ok());
        assert_eq!(taken.count(), MAX_CALLS);
        assert_eq!(gathered.take(&call(100)), Err(Unusable::TooManyCalls));
        let mut gathered = Gathered::default();
        let text = json!({ "choices": [{ "delta": { "content": "x".repeat(1 << 18) } }] });
        let taken = (0..100).take_while(|_| gathered.take(&text).is_ok());
        assert_eq!(taken.count(), 4);
        assert_eq!(gathered.take(&text), Err(Unusable::TooMuch));
    }

    #[test]
    fn ids_and_names_of_calls_are_bounded() {
        let named = |id: &str, name: &str| {
            json!({ "tool_calls": [{ "index": 0, "id": id,
                "function": { "name": name, "arguments": "" } }] })
        };
        let long = "x".repeat(100_000);
        let said = gather(&[named(&long, &long), named("", "ä")]);
        assert_eq!(said.calls.len(), 1);
        assert_eq!(said.calls[0].id, "call00001");
        assert_eq!(said.calls[0].name.len(), MAX_NAME);
        let said = gather(&[named(&long[..MAX_ID], &format!("{}ä", &long[..63]))]);
        assert_eq!(said.calls[0].id.len(), MAX_ID);
        assert_eq!(said.calls[0].name, long[..63]);
    }
}
