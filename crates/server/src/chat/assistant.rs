//! The assistant that answers in a thread, and the sub-agent that runs code for it.
//!
//! The main assistant talks; what has to do with files and figures it hands over to the
//! `code_execution` sub-agent, which runs Python step by step and comes back with a summary. Both
//! are loops around a model whose every word is hostile input: it can call the tools that there are
//! and nothing else, and what a [`Turn`] refuses it cannot have.

mod context;
mod history;
mod paths;
mod prompts;
mod session;
mod sub_agent;
mod summary;
mod thoughts;
mod tools;
mod voice;

use glovebox_protocol::thread::{ReplyFailure, ThreadEventBody};
use glovebox_store::StoreError;

use self::context::Context;
use self::history::{Kept, Work};
use self::session::Session;
use self::tools::HandOver;
use self::voice::Voice;
use super::model::{ChatMessage, Finish, ModelEndpoint, Said, ToolCall, ToolUse};
use super::turn::{Turn, TurnError};

/// How often the model is asked in one reply; the last time it has to say something.
const MAX_ROUNDS: usize = 8;

/// Answers the newest message of a thread. What was said is kept also where it ends early.
///
/// # Errors
/// Why it did not come to its end.
pub(crate) async fn reply(turn: &Turn, model: &ModelEndpoint) -> Result<(), TurnError> {
    let history = turn.history().await?;
    let files = turn.files().await?;
    let knowledge = turn.knowledge().await?;
    let mut reply = Reply {
        session: Session::new(turn, model),
        voice: Voice::new(turn),
        told: history::told(&history),
        said: Vec::new(),
        earlier: history::earlier_work(&history),
        work: Vec::new(),
        round_begins_at: 0,
    };
    let system = prompts::assistant(&files, &knowledge);
    let replied = reply.talk(&system).await;
    let finished = reply.voice.flush_all().await;
    let broken_off = replied.as_ref().err().map(|_| {
        // What people have heard of the answer that did not come to its end.
        let said = reply.voice.said().get(reply.round_begins_at..);
        said.unwrap_or_default().trim()
    });
    let kept = Kept::new(reply.said, reply.work, broken_off);
    turn.keep_turns(&kept.to_json(), reply.voice.said()).await?;
    replied?;
    finished.map_err(TurnError::from)
}

/// One reply on its way.
struct Reply<'a> {
    session: Session<'a>,
    voice: Voice<'a>,
    /// What was said before, as the model is told it.
    told: Vec<ChatMessage>,
    /// What was said in this reply, by the model and by tools.
    said: Vec<ChatMessage>,
    /// What code did in earlier replies.
    earlier: Vec<Work>,
    /// What code did in this one.
    work: Vec<Work>,
    /// How much had been told when the model was asked last, in bytes.
    round_begins_at: usize,
}

impl Reply<'_> {
    async fn talk(&mut self, system: &str) -> Result<(), TurnError> {
        let tools = tools::of_assistant();
        let mut is_asked_twice = false;
        for round in 1..=MAX_ROUNDS {
            let tool_use = if round == MAX_ROUNDS {
                ToolUse::Over
            } else {
                ToolUse::Free
            };
            let mut context = Context::new(self.session.endpoint(), &tools, 1);
            context.push(ChatMessage::System {
                text: system.to_owned(),
            });
            context.extend(self.told.iter().cloned());
            // Last of what was said before stands the question.
            context.pin_last();
            context.extend(self.said.iter().cloned());
            self.round_begins_at = self.voice.said().len();
            self.voice.begin();
            let asked = self.session.ask(&mut context, &tools, tool_use);
            let said = self.session.hear(asked, &mut self.voice).await?;
            if said.calls.is_empty() || tool_use == ToolUse::Over {
                if self.voice.has_spoken() {
                    self.end(said).await?;
                    return Ok(());
                }
                if is_asked_twice {
                    break;
                }
                is_asked_twice = true;
                self.said.push(ChatMessage::User {
                    text: prompts::EMPTY.into(),
                });
                continue;
            }
            self.said.push(ChatMessage::Assistant {
                text: thoughts::without_thoughts(&said.text),
                calls: said.calls.clone(),
            });
            for call in said.calls {
                let text = self.call(&call).await?;
                self.said.push(ChatMessage::Tool { call, text });
            }
        }
        Err(TurnError::Refused(ReplyFailure::new(
            "model_empty",
            "the model gave no answer in words",
            "try again; when it stays so, a system admin tests the model at Admin → System → Models",
        )))
    }

    /// The model has said its last word.
    async fn end(&mut self, said: Said) -> Result<(), StoreError> {
        self.voice.flush_all().await?;
        self.said.push(ChatMessage::Assistant {
            text: thoughts::without_thoughts(&said.text),
            calls: Vec::new(),
        });
        let (code, text, fix) = match said.finish {
            Finish::Stopped => return Ok(()),
            // Some endpoints never say that they are done.
            Finish::Unmarked if ends_whole(&said.text) => return Ok(()),
            Finish::Unmarked => (
                "answer_unmarked",
                "The model's endpoint has ended the answer without saying that it is whole.",
                "Where something is missing, ask it to go on.",
            ),
            Finish::Cut => (
                "answer_cut",
                "The model reached its limit in the middle of the answer.",
                "Ask it to go on.",
            ),
            Finish::Filtered => (
                "answer_filtered",
                "The model's endpoint holds the rest of the answer back.",
                "Ask in other words.",
            ),
        };
        let turn = self.session.turn();
        turn.tell(ThreadEventBody::Notice {
            reply: Some(turn.reply()),
            code: code.into(),
            text: text.into(),
            fix: Some(fix.into()),
        })
        .await
    }

    /// Does what a call asks for, and says what came of it in words for the model.
    async fn call(&mut self, call: &ToolCall) -> Result<String, TurnError> {
        self.voice.flush_all().await?;
        let wanted: HandOver = match tools::hand_over(call) {
            Ok(wanted) => wanted,
            Err(why) => return Ok(summary::tool_error(&why)),
        };
        let turn = self.session.turn();
        turn.tell(ThreadEventBody::HandedOver {
            reply: turn.reply(),
            task: paths::without_paths(&wanted.task),
        })
        .await?;
        let earlier: Vec<&Work> = self.earlier.iter().chain(&self.work).collect();
        let mut work = Work::new(&wanted.task);
        let outcome = sub_agent::work(&self.session, &wanted, &earlier, &mut work).await;
        // What was done is known to the next task, also where this one broke off.
        self.work.push(work);
        outcome
    }
}

/// Whether a text ends as texts do: after a sentence, a list, a table or code, and not within a word.
fn ends_whole(text: &str) -> bool {
    const ENDS: &str = ".!?:;…。！？।؟)]}>\"'»”’`*_|~";
    let last = text.trim_end().chars().next_back();
    last.is_none_or(|last| {
        ENDS.contains(last) || !(last.is_alphanumeric() || last == ',' || last == '-')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_ends_within_a_word_is_not_whole() {
        for whole in [
            "Done.",
            "Done!\n",
            "| a | b |",
            "```\nx\n```",
            "**yes**",
            "好。",
            "🙂",
            "",
        ] {
            assert!(ends_whole(whole), "{whole}");
        }
        for half in ["The sum is 3", "I wou", "first, second,", "well-", "これは"] {
            assert!(!ends_whole(half), "{half}");
        }
    }
}
