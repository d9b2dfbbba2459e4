//! What a scripted endpoint plays, and when.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// A script: rules of which the first that fits a question is played.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The models that it lists; where there is none it has no list.
    pub models: Vec<String>,
    /// The key that it wants.
    pub api_key: Option<String>,
    /// What it plays.
    pub rules: Vec<Rule>,
}

/// One answer, and when it is played.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rule {
    /// When.
    pub when: When,
    /// How often at most.
    pub times: Option<usize>,
    /// What.
    pub then: Play,
}

/// Which questions a rule fits. What is not said does not narrow.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// What the newest message of a person contains.
    pub said: Option<String>,
    /// What the newest message of all contains.
    pub last: Option<String>,
    /// A tool that is offered.
    pub tool: Option<String>,
    /// How many results of tools there are since a person said something.
    pub results: Option<usize>,
    /// Whether tools may be called.
    pub may_call: Option<bool>,
}

/// How calls of tools are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// Arguments in pieces of a text.
    #[default]
    Fragments,
    /// Each call in one piece.
    Whole,
    /// Each call in one piece, with its arguments as an object.
    Objects,
    /// As before there were tools.
    Legacy,
}

/// A call of a tool.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The tool.
    pub name: String,
    /// What it is called with; a text is sent as it is, whatever it is.
    #[serde(default)]
    pub arguments: Value,
}

/// One answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Play {
    /// The words.
    pub text: String,
    /// The tools that are called.
    pub calls: Vec<Call>,
    /// How calls are written.
    pub style: Style,
    /// How many characters one event has.
    pub piece: usize,
    /// Whether it comes as a stream.
    pub stream: bool,
    /// What is left out: `id`, `index`, `type`, `role`, `finish`, `usage`, `done`, `content_type`.
    pub omit: Vec<String>,
    /// Whether lines end with a carriage return too.
    pub crlf: bool,
    /// Whether comments keep the connection alive between events.
    pub comments: bool,
    /// Why it ends; by itself `tool_calls` or `stop`.
    pub finish: Option<String>,
    /// Milliseconds before the head of the answer.
    pub wait_ms: u64,
    /// Milliseconds before each event.
    pub pause_ms: u64,
    /// The status, where it is no answer.
    pub status: u16,
    /// More headers.
    pub headers: BTreeMap<String, String>,
    /// The body as it is, in place of everything above.
    pub body: Option<String>,
    /// How often that body comes.
    pub repeat: usize,
    /// How many bytes one piece on the wire has; by itself an event is one.
    pub shred: Option<usize>,
    /// After how many bytes of the body the connection breaks.
    pub cut: Option<usize>,
    /// Whether it then says nothing more until whoever asked is gone.
    pub hang: bool,
}

impl Default for Play {
    fn default() -> Self {
        Self {
            text: String::new(),
            calls: Vec::new(),
            style: Style::default(),
            piece: 12,
            stream: true,
            omit: Vec::new(),
            crlf: false,
            comments: false,
            finish: None,
            wait_ms: 0,
            pause_ms: 0,
            status: 200,
            headers: BTreeMap::new(),
            body: None,
            repeat: 1,
            shred: None,
            cut: None,
            hang: false,
        }
    }
}

impl When {
    /// Whether a question is one of these.
    #[must_use]
    pub fn fits(&self, question: &Value) -> bool {
        let empty = Vec::new();
        let messages = question["messages"].as_array().unwrap_or(&empty);
        let is_person = |message: &&Value| message["role"] == "user";
        let is_result =
            |message: &&Value| message["role"] == "tool" || message["role"] == "function";
        let holds = |part: &Option<String>, message: Option<&Value>| {
            part.as_ref().is_none_or(|part| {
                let text = message.and_then(|message| message["content"].as_str());
                text.is_some_and(|text| text.contains(part.as_str()))
            })
        };
        let results = messages
            .iter()
            .rev()
            .take_while(|message| !is_person(message));
        let offers = |tool: &String| {
            let tools = question["tools"].as_array().unwrap_or(&empty);
            tools
                .iter()
                .any(|one| one["function"]["name"] == tool.as_str())
        };
        holds(&self.said, messages.iter().rev().find(is_person))
            && holds(&self.last, messages.last())
            && self.tool.as_ref().is_none_or(offers)
            && self
                .results
                .is_none_or(|count| results.filter(is_result).count() == count)
            && self
                .may_call
                .is_none_or(|may| may == (question["tool_choice"] != "none"))
    }
}

impl Play {
    /// Whether something is left out.
    pub(super) fn omits(&self, what: &str) -> bool {
        self.omit.iter().any(|omitted| omitted == what)
    }
}
