//! What a model is asked.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One message of a conversation with a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    /// What the model is to be and to know.
    System {
        /// The words.
        text: String,
    },
    /// What a person said, or who asks in its place.
    User {
        /// The words.
        text: String,
    },
    /// What the model said.
    Assistant {
        /// The words.
        text: String,
        /// The tools that it called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
    },
    /// What came of a call.
    Tool {
        /// The call.
        call: ToolCall,
        /// What came of it, in words.
        text: String,
    },
}

/// A call of a tool, as the model made it: every part of it is hostile input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's own name for the call, or one of ours where it gave none.
    pub id: String,
    /// The tool, or what the model takes for one.
    pub name: String,
    /// What is meant to be a JSON object.
    pub arguments: String,
    /// Whether it came in the form from before there were tools, and is answered in that form.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_legacy: bool,
}

/// A tool that a model may call.
#[derive(Debug, Clone)]
pub struct Tool {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in the model's words.
    pub description: &'static str,
    /// Its arguments, as a JSON schema.
    pub parameters: Value,
}

/// Whether the model may call tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolUse {
    /// As it likes.
    Free,
    /// Not any more: it has to say something.
    Over,
}

/// One question to a model.
#[derive(Debug, Clone)]
pub struct ChatRequest<'a> {
    /// The conversation so far.
    pub messages: &'a [ChatMessage],
    /// The tools that there are.
    pub tools: &'a [Tool],
    /// Whether it may call them.
    pub tool_use: ToolUse,
}

impl ChatRequest<'_> {
    /// The body of the call. It has nothing that some compatible servers do not know.
    pub(super) fn body(&self, model: &str) -> Value {
        let mut body = Map::new();
        body.insert("model".into(), model.into());
        body.insert("stream".into(), true.into());
        let messages = self.messages.iter().map(wire).collect();
        body.insert("messages".into(), Value::Array(messages));
        if !self.tools.is_empty() {
            // Many servers want to see the tools as long as calls of them are in the conversation.
            let tools = self.tools.iter().map(|tool| {
                json!({ "type": "function", "function": {
                    "name": tool.name, "description": tool.description,
                    "parameters": tool.parameters } })
            });
            body.insert("tools".into(), tools.collect());
            if self.tool_use == ToolUse::Over {
                body.insert("tool_choice".into(), "none".into());
            }
        }
        Value::Object(body)
    }
}

fn wire(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System { text } => json!({ "role": "system", "content": text }),
        ChatMessage::User { text } => json!({ "role": "user", "content": text }),
        ChatMessage::Assistant { text, calls } => assistant(text, calls),
        ChatMessage::Tool { call, text } if call.is_legacy => {
            json!({ "role": "function", "name": call.name, "content": text })
        }
        ChatMessage::Tool { call, text } => {
            json!({ "role": "tool", "tool_call_id": call.id, "content": text })
        }
    }
}

fn assistant(text: &str, calls: &[ToolCall]) -> Value {
    let content = if text.is_empty() && !calls.is_empty() {
        Value::Null
    } else {
        text.into()
    };
    let mut message = json!({ "role": "assistant", "content": content });
    if let [call] = calls
        && call.is_legacy
    {
        message["function_call"] = function(call);
    } else if !calls.is_empty() {
        let calls = calls
            .iter()
            .map(|call| json!({ "id": call.id, "type": "function", "function": function(call) }));
        message["tool_calls"] = calls.collect();
    }
    message
}

/// What the model called goes back to it as it was, but where it is no object: servers that read
/// it would refuse the whole conversation.
fn function(call: &ToolCall) -> Value {
    let is_object = serde_json::from_str::<Map<String, Value>>(&call.arguments).is_ok();
    let arguments = if is_object {
        call.arguments.as_str()
    } else {
        "{}"
    };
    json!({ "name": call.name, "arguments": arguments })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, arguments: &str, is_legacy: bool) -> ToolCall {
        ToolCall {
            id: id.into(),
            name: "count".into(),
            arguments: arguments.into(),
            is_legacy,
        }
    }

    #[test]
    fn a_conversation_is_written_as_servers_know_it() {
        let (good, broken) = (call("a", "{\"n\":1}", false), call("b", "{\"n\":", false));
        let legacy = call("c", "{}", true);
        let messages = [
            ChatMessage::System { text: "be".into() },
            ChatMessage::User { text: "hi".into() },
            ChatMessage::Assistant {
                text: String::new(),
                calls: vec![good.clone(), broken],
            },
            ChatMessage::Tool {
                call: good,
                text: "1".into(),
            },
            ChatMessage::Assistant {
                text: "so".into(),
                calls: vec![legacy.clone()],
            },
            ChatMessage::Tool {
                call: legacy,
                text: "2".into(),
            },
        ];
        let tools = [Tool {
            name: "count",
            description: "counts",
            parameters: json!({ "type": "object" }),
        }];
        let mut request = ChatRequest {
            messages: &messages,
            tools: &tools,
            tool_use: ToolUse::Free,
        };
        let body = request.body("m");
        assert_eq!(body["model"], "m");
        assert_eq!(body["stream"], true);
        assert!(body.get("tool_choice").is_none());
        assert_eq!(body["tools"][0]["function"]["name"], "count");
        let sent = &body["messages"];
        assert_eq!(sent[2]["content"], Value::Null);
        assert_eq!(
            sent[2]["tool_calls"][0]["function"]["arguments"],
            "{\"n\":1}"
        );
        assert_eq!(sent[2]["tool_calls"][1]["function"]["arguments"], "{}");
        assert_eq!(
            sent[3],
            json!({ "role": "tool", "tool_call_id": "a", "content": "1" })
        );
        assert_eq!(sent[4]["function_call"]["name"], "count");
        assert_eq!(
            sent[5],
            json!({ "role": "function", "name": "count", "content": "2" })
        );
        request.tool_use = ToolUse::Over;
        assert_eq!(request.body("m")["tool_choice"], "none");
        request.tools = &[];
        assert!(request.body("m").get("tools").is_none());
    }
}
