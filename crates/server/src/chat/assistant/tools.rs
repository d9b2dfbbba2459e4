//! The tools that a model may call, and what it calls them with. There is no argument for a thread,
//! a sandbox, a runtime, an image or a limit, and one that is not known is refused.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::chat::model::{Tool, ToolCall};

/// Most bytes of code in one step.
const MAX_CODE: usize = 200 * 1024;

/// Most characters of a task.
const MAX_TASK: usize = 8_000;

/// Most characters of a line that says what is being done.
const MAX_PLAN: usize = 200;

/// The tool of the main assistant.
pub(super) const CODE_EXECUTION: &str = "code_execution";

/// What the main assistant may call.
pub(super) fn of_assistant() -> Vec<Tool> {
    vec![Tool {
        name: CODE_EXECUTION,
        description: "Hands a task over to an agent that runs Python in this thread's sealed \
                      sandbox: reads and converts files, calculates, analyses data, makes charts, \
                      workbooks, decks and documents. It answers with a summary; files that it \
                      saves are shown to the person.",
        parameters: json!({
            "type": "object",
            "properties": {
                "task": { "type": "string", "description": "What is to be found out or made, \
                    from which files, and in which form. The agent knows nothing else of the \
                    conversation." },
                "files": { "type": "array", "items": { "type": "string" },
                    "description": "Names of the files that the task is about." }
            },
            "required": ["task"],
            "additionalProperties": false
        }),
    }]
}

/// What the sub-agent may call.
pub(super) fn of_sub_agent() -> Vec<Tool> {
    let name = json!({ "type": "string", "description": "Its name, as it is listed." });
    vec![
        Tool {
            name: "run_python",
            description: "Runs Python in the sandbox and answers with the end of its output, the \
                          value of the last expression, the files that were saved, and the reason \
                          of a failure. Variables stay from call to call.",
            parameters: json!({
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "The Python." },
                    "plan": { "type": "string", "description": "What this step does, in one \
                        short line for the person." }
                },
                "required": ["code", "plan"],
                "additionalProperties": false
            }),
        },
        Tool {
            name: "list_files",
            description: "Lists the files of this thread and of the knowledge base by name.",
            parameters: json!({
                "type": "object", "properties": {}, "additionalProperties": false
            }),
        },
        Tool {
            name: "open_knowledge_file",
            description: "Puts a file of the workspace's knowledge base into the sandbox, where \
                          code can open it by its name.",
            parameters: json!({
                "type": "object", "properties": { "name": name },
                "required": ["name"], "additionalProperties": false
            }),
        },
    ]
}

/// A task that is handed over.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HandOver {
    /// What is to be done.
    pub(super) task: String,
    /// Names of files.
    #[serde(default)]
    pub(super) files: Option<Vec<String>>,
}

/// What the sub-agent wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// To run code.
    Run {
        /// The Python.
        code: String,
        /// What it does, in a line.
        plan: String,
    },
    /// To know which files there are.
    List,
    /// To open a file of the knowledge base.
    Open(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    code: String,
    #[serde(default)]
    plan: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    name: String,
}

/// Reads a call of the main assistant; what is wrong with it, in words for the model.
pub(super) fn hand_over(call: &ToolCall) -> Result<HandOver, String> {
    if call.name != CODE_EXECUTION {
        return Err(unknown(&call.name, &of_assistant()));
    }
    let mut wanted: HandOver = arguments(call)?;
    wanted.task = first(wanted.task.trim(), MAX_TASK);
    if wanted.task.is_empty() {
        return Err("the task is empty: say what is to be done".into());
    }
    Ok(wanted)
}

/// Reads a call of the sub-agent; what is wrong with it, in words for the model.
pub(super) fn wish(call: &ToolCall) -> Result<Wish, String> {
    match call.name.as_str() {
        "run_python" => {
            let run: Run = arguments(call)?;
            let code = without_fence(&run.code);
            if code.trim().is_empty() {
                return Err("the code is empty".into());
            }
            if code.len() > MAX_CODE {
                return Err(format!("the code has more than {MAX_CODE} bytes"));
            }
            let plan = run.plan.unwrap_or_default();
            let plan = plan.lines().find(|line| !line.trim().is_empty());
            Ok(Wish::Run {
                code,
                plan: first(plan.unwrap_or("Running code").trim(), MAX_PLAN),
            })
        }
        "list_files" => arguments::<List>(call).map(|_| Wish::List),
        "open_knowledge_file" => arguments::<Open>(call).map(|open| Wish::Open(open.name)),
        name => Err(unknown(name, &of_sub_agent())),
    }
}

fn unknown(name: &str, tools: &[Tool]) -> String {
    let names: Vec<_> = tools.iter().map(|tool| tool.name).collect();
    format!(
        "there is no tool `{}`; there is {}",
        first(name, 64),
        names.join(", ")
    )
}

fn arguments<T: DeserializeOwned>(call: &ToolCall) -> Result<T, String> {
    // An object and nothing else: a list would be taken for the fields in their order.
    let object: Map<String, Value> = serde_json::from_str(&call.arguments)
        .map_err(|error| format!("the arguments are no JSON object ({error}); send them again"))?;
    serde_json::from_value(Value::Object(object))
        .map_err(|error| format!("the arguments are refused: {error}"))
}

/// Code as it was meant, where a model puts a fence around it.
fn without_fence(code: &str) -> String {
    let trimmed = code.trim();
    let inner = trimmed
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'));
    match inner {
        Some((language, inner)) if !language.trim().contains(' ') => inner.to_owned(),
        _ => code.to_owned(),
    }
}

/// The first characters of a text.
pub(super) fn first(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, arguments: &str) -> ToolCall {
        ToolCall {
            id: "a".into(),
            name: name.into(),
            arguments: arguments.into(),
            is_legacy: false,
        }
    }

    #[test]
    fn what_a_model_may_ask_for_is_taken() {
        let run = wish(&call(
            "run_python",
            r#"{"code": "1", "plan": "Counts\nmore"}"#,
        ));
        let expected = Wish::Run {
            code: "1".into(),
            plan: "Counts".into(),
        };
        assert_eq!(run, Ok(expected));
        let fenced = wish(&call("run_python", r#"{"code": "```python\nx = 1\n```"}"#)).unwrap();
        assert!(matches!(fenced, Wish::Run { code, .. } if code == "x = 1\n"));
        assert_eq!(wish(&call("list_files", "{}")), Ok(Wish::List));
        let open = wish(&call("open_knowledge_file", r#"{"name": "a.pdf"}"#));
        assert_eq!(open, Ok(Wish::Open("a.pdf".into())));
        let over = hand_over(&call(
            "code_execution",
            r#"{"task": " sum ", "files": ["a"]}"#,
        ));
        assert_eq!(over.unwrap().task, "sum");
    }

    #[test]
    fn what_a_model_may_not_choose_is_refused() {
        for (name, arguments) in [
            (
                "run_python",
                r#"{"code": "1", "plan": "x", "sandbox": "other"}"#,
            ),
            ("run_python", r#"{"code": "1", "timeout": 9999}"#),
            ("run_python", r#"{"code": "1", "image": "root"}"#),
            ("run_python", r#"["1", "plan"]"#),
            ("run_python", r#"{"code": "1""#),
            ("run_python", r#"{"code": 1}"#),
            ("run_python", r#"{"code": " "}"#),
            ("run_python", "\"1\""),
            ("list_files", r#"{"thread": "other"}"#),
            (
                "open_knowledge_file",
                r#"{"name": "a", "workspace": "other"}"#,
            ),
            ("delete_everything", "{}"),
            ("code_execution", r#"{"task": "x"}"#),
        ] {
            assert!(wish(&call(name, arguments)).is_err(), "{name} {arguments}");
        }
        for arguments in [
            r#"{"task": "x", "runtime": "docker"}"#,
            r#"{"task": ""}"#,
            r#"{"files": []}"#,
            "[]",
        ] {
            assert!(
                hand_over(&call(CODE_EXECUTION, arguments)).is_err(),
                "{arguments}"
            );
        }
        assert!(hand_over(&call("run_python", "{}")).is_err());
    }
}
