//! The `code_execution` sub-agent: runs Python step by step until its task is done.

use glovebox_protocol::file::is_deceptive;
use glovebox_protocol::thread::{ReplyFailure, ThreadEventBody};

use super::context::Context;
use super::history::Work;
use super::paths::without_paths;
use super::prompts::{self, all_listed, line};
use super::session::Session;
use super::summary;
use super::thoughts::without_thoughts;
use super::tools::{self, HandOver, Wish};
use crate::chat::model::{ChatMessage, Said, ToolCall, ToolUse};
use crate::chat::turn::{ThreadFile, TurnError};

/// How many steps of code one task has.
const MAX_STEPS: usize = 12;

/// How often the model is asked for one task: steps, looks at the files, and calls that make no
/// sense.
const MAX_ROUNDS: usize = 24;

/// Most characters of what the sub-agent reports.
const MAX_REPORT: usize = 8_000;

/// Does a task, and gives what came of it, in words for the main assistant. What was done is
/// written into `work` also where it breaks off.
pub(super) async fn work(
    session: &Session<'_>,
    wanted: &HandOver,
    earlier: &[&Work],
    work: &mut Work,
) -> Result<String, TurnError> {
    let files = session.turn().files().await?;
    let knowledge = session.turn().knowledge().await?;
    let there = (&files[..], &knowledge);
    let task = prompts::task(&wanted.task, wanted.files.as_deref(), there, earlier);
    let mut agent = SubAgent {
        session,
        work,
        said: vec![
            ChatMessage::System {
                text: prompts::sub_agent(MAX_STEPS),
            },
            ChatMessage::User { text: task },
        ],
        saved: Vec::new(),
        steps: 0,
        failed_code: None,
        refused: None,
    };
    let report = agent.run().await?;
    Ok(agent.told(&report))
}

/// A task on its way.
struct SubAgent<'a> {
    session: &'a Session<'a>,
    work: &'a mut Work,
    said: Vec<ChatMessage>,
    saved: Vec<ThreadFile>,
    steps: usize,
    /// The code of the last step, where it failed.
    failed_code: Option<String>,
    /// What stands in the way of any step.
    refused: Option<ReplyFailure>,
}

impl SubAgent<'_> {
    /// What the main assistant is told.
    fn told(&self, report: &str) -> String {
        let mut text = match &self.refused {
            Some(refused) => format!(
                "The task could not be done, as code cannot run: {}. What helps: {}. Tell the \
                 person so, and do not try again in this reply.\n",
                refused.message, refused.fix
            ),
            None => summary::fenced("the report on the task", &without_paths(report)),
        };
        let lines: Vec<_> = self.saved.iter().map(line).collect();
        if !lines.is_empty() {
            text.push_str(&summary::fenced("saved files", &lines.join("\n")));
        }
        text
    }

    async fn run(&mut self) -> Result<String, TurnError> {
        let mut is_asked_twice = false;
        for round in 1..=MAX_ROUNDS {
            let is_over = round == MAX_ROUNDS || self.steps >= MAX_STEPS;
            let said = self.ask(is_over).await?;
            let text = without_thoughts(&said.text);
            if said.calls.is_empty() || is_over {
                if !text.trim().is_empty() {
                    return Ok(tools::first(text.trim(), MAX_REPORT));
                }
                if is_over || is_asked_twice {
                    break;
                }
                is_asked_twice = true;
                self.said.push(ChatMessage::User {
                    text: prompts::EMPTY.into(),
                });
                continue;
            }
            self.said.push(ChatMessage::Assistant {
                text,
                calls: said.calls.clone(),
            });
            for call in said.calls {
                let text = self.call(&call).await?;
                self.said.push(ChatMessage::Tool { call, text });
            }
            if self.refused.is_some() {
                return Ok(String::new());
            }
        }
        Ok(format!(
            "It ended after {} steps without a report of its own. What each step said stands in the \
             thread.",
            self.steps
        ))
    }

    async fn ask(&mut self, is_over: bool) -> Result<Said, TurnError> {
        let tools = tools::of_sub_agent();
        let tool_use = if is_over {
            self.said.push(ChatMessage::User {
                text: prompts::OUT_OF_STEPS.into(),
            });
            ToolUse::Over
        } else {
            ToolUse::Free
        };
        let mut context = Context::new(self.session.endpoint(), &tools, 2);
        context.extend(self.said.iter().cloned());
        let asked = self.session.ask(&mut context, &tools, tool_use);
        self.session.overhear(asked).await
    }

    /// Does what a call asks for, and says what came of it in words for the model.
    async fn call(&mut self, call: &ToolCall) -> Result<String, TurnError> {
        if self.refused.is_some() {
            return Ok(summary::tool_error("code cannot run"));
        }
        match tools::wish(call) {
            Err(why) => Ok(summary::tool_error(&why)),
            Ok(Wish::List) => {
                let turn = self.session.turn();
                Ok(all_listed(&turn.files().await?, &turn.knowledge().await?))
            }
            Ok(Wish::Open(name)) => self.open(&name).await,
            Ok(Wish::Run { code, plan }) => self.step(&code, &plan).await,
        }
    }

    async fn plan(&self, text: &str) -> Result<(), TurnError> {
        let turn = self.session.turn();
        turn.tell(ThreadEventBody::Plan {
            reply: turn.reply(),
            text: without_paths(&plain(text)),
        })
        .await?;
        Ok(())
    }

    async fn open(&mut self, name: &str) -> Result<String, TurnError> {
        self.plan(&format!("Opening {}", prompts::shown(name)))
            .await?;
        match self.session.turn().open_knowledge_file(name).await {
            Ok(file) => Ok(summary::fenced(
                "the file that can be opened now",
                &line(&file),
            )),
            Err(TurnError::Refused(refused)) => Ok(summary::tool_error(&format!(
                "{}; {}",
                refused.message, refused.fix
            ))),
            Err(error) => Err(error),
        }
    }

    async fn step(&mut self, code: &str, plan: &str) -> Result<String, TurnError> {
        if self.steps >= MAX_STEPS {
            return Ok(summary::tool_error("there is no step left"));
        }
        if self.failed_code.as_deref() == Some(code) {
            return Ok(summary::tool_error(
                "this very code has just failed; change it before you run it again",
            ));
        }
        self.plan(plan).await?;
        self.steps += 1;
        let report = match self.session.turn().run_python(code).await {
            Ok(report) => report,
            // The next step gets a new sandbox.
            Err(TurnError::Refused(refused)) if refused.code == "sandbox_gone" => {
                return Ok(summary::tool_error(&format!(
                    "{}; {}",
                    refused.message, refused.fix
                )));
            }
            Err(TurnError::Refused(refused)) => {
                self.refused = Some(refused);
                return Ok(summary::tool_error("code cannot run"));
            }
            Err(error) => return Err(error),
        };
        self.failed_code = (!report.is_success).then(|| code.to_owned());
        self.work.done(code, summary::outcome(&report));
        for file in &report.files {
            self.saved.retain(|saved| saved.name != file.name);
            self.saved.push(file.clone());
        }
        let left = MAX_STEPS - self.steps;
        let told = summary::of_step(&report);
        Ok(format!("{told}Steps left: {left}.\n"))
    }
}

/// A line of a model for people, without marks that change how the rest is read.
fn plain(text: &str) -> String {
    text.chars()
        .filter(|character| !is_deceptive(*character))
        .collect()
}
