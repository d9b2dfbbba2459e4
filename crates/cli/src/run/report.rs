//! Tells what happens: to a person in lines beside the program's output, to a program as events.

use std::collections::HashSet;
use std::io::IsTerminal as _;

use bytes::Bytes;
use chrono::Utc;
use glovebox_box::weakness::Weakness;
use glovebox_protocol::artifact::LeftOutReason;
use glovebox_protocol::event::{Event, EventBody};

use super::safe_name::SafePath;
use crate::failure::Failure;
use crate::output::OutputThread;
use crate::quantity::size;

/// How many files that stay in the sandbox a person is told of one by one.
const MAX_LEFT_OUT: usize = 20;

/// For whom it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Audience {
    /// A person.
    Person,
    /// A person who wants to hear of nothing that went well.
    QuietPerson,
    /// A program: one event a line on standard output.
    Program,
}

/// Tells what happens.
pub(crate) struct Reporter {
    output: OutputThread,
    audience: Audience,
    seq: u64,
    keeps_colours: bool,
    /// The names of the files that went in, for people.
    staged: HashSet<String>,
    /// How many files that stay in the sandbox were told of, and how many were not.
    left_out: (usize, u64),
}

impl Reporter {
    /// Tells it to `audience`.
    pub(crate) fn new(output: OutputThread, audience: Audience) -> Self {
        Self {
            output,
            audience,
            seq: 0,
            keeps_colours: std::io::stderr().is_terminal(),
            staged: HashSet::new(),
            left_out: (0, 0),
        }
    }

    /// Tells one event. Fails when nobody reads the program's output any more.
    pub(crate) async fn event(&mut self, body: EventBody) -> Result<(), Failure> {
        if self.audience == Audience::Program {
            return self.as_document(body).await;
        }
        match body {
            EventBody::Stdout(bytes) | EventBody::LateOutput { output: bytes, .. } => {
                return self.output.out(bytes.0).await;
            }
            EventBody::InputStaged { name, .. } => {
                self.staged.insert(name);
            }
            EventBody::Stderr(bytes) => return self.output.err(bytes.0).await,
            EventBody::Error { traceback, .. } => {
                let mut text = traceback.join("\n");
                if !self.keeps_colours {
                    text = without_colours(&text);
                }
                text.push('\n');
                return self.output.err(text.into()).await;
            }
            other => {
                for line in self.lines(&other) {
                    self.output.line(line).await;
                }
            }
        }
        Ok(())
    }

    /// Tells a person how many files of those that stay were not told of.
    pub(crate) async fn sum_up(&mut self) {
        let untold = std::mem::take(&mut self.left_out.1);
        if untold > 0 {
            let line = format!("left out {untold} more files that are not listed");
            self.output.line(line).await;
        }
    }

    /// Tells a person something that is no event. A program is not told.
    pub(crate) async fn note(&self, line: String) {
        if self.audience == Audience::Person {
            self.output.line(line).await;
        }
    }

    /// Tells a person something that went wrong; a program learns it from the events.
    pub(crate) async fn warning(&self, line: String) {
        if self.audience != Audience::Program {
            self.output.line(line).await;
        }
    }

    /// Tells that Glovebox itself failed, as the last thing.
    pub(crate) async fn failed(&mut self, failure: &Failure) -> Result<(), Failure> {
        for line in failure.lines() {
            self.output.line(line).await;
        }
        if self.audience == Audience::Program {
            return self
                .as_document(EventBody::Failed(failure.for_program()))
                .await;
        }
        Ok(())
    }

    /// Waits until everything is written. Fails when not all of it could be.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        self.output.finish().await
    }

    async fn as_document(&mut self, body: EventBody) -> Result<(), Failure> {
        self.seq += 1;
        let event = Event {
            seq: self.seq,
            at: Utc::now(),
            body,
        };
        let mut line = serde_json::to_vec(&event)
            .map_err(|error| Failure::machine("writing an event as JSON", error))?;
        line.push(b'\n');
        self.output.out(Bytes::from(line)).await
    }

    fn lines(&mut self, event: &EventBody) -> Vec<String> {
        match event {
            EventBody::SandboxStarting {
                accepted_weaker, ..
            } => accepted_weaker
                .iter()
                .map(|name| match name.parse::<Weakness>() {
                    Ok(weakness) => format!("warning: without {name}: {}", weakness.what_is_lost()),
                    Err(_) => format!("warning: without {name}"),
                })
                .collect(),
            EventBody::OutputDropped {
                dropped_bytes,
                limit_bytes,
            } => vec![dropped(*dropped_bytes, *limit_bytes)],
            EventBody::KernelReplaced { reason } => {
                vec![format!(
                    "warning: a fresh kernel was started, variables are gone: {reason}"
                )]
            }
            EventBody::ExecutionEnded(ended) => ended
                .notes
                .iter()
                .map(|note| format!("warning: {note}"))
                .collect(),
            EventBody::Artifact {
                name,
                saved_as,
                bytes,
                already_there,
                ..
            } if self.audience == Audience::Person => {
                let place = glovebox_protocol::file::escape_for_display(saved_as.as_bytes());
                let saved_name = saved_as.rsplit('/').next().unwrap_or(saved_as);
                vec![if *already_there {
                    format!("unchanged {place} ({})", size(*bytes))
                } else if saved_name.as_bytes() == name.base() {
                    format!("saved {place} ({})", size(*bytes))
                } else if saved_name == SafePath::of(name).file {
                    format!(
                        "saved {place} ({}); {name} is no name for a file here",
                        size(*bytes)
                    )
                } else {
                    format!("saved {place} ({}); {name} was taken", size(*bytes))
                }]
            }
            // That an input stays is no news to whoever put it in.
            EventBody::LeftOut {
                reason: LeftOutReason::UnchangedInput,
                ..
            } => Vec::new(),
            EventBody::LeftOut {
                name,
                reason: LeftOutReason::TypeNotAllowed,
                ..
            } if self.staged.contains(&name.for_display()) => Vec::new(),
            EventBody::LeftOut { .. } if self.left_out.0 >= MAX_LEFT_OUT => {
                self.left_out.1 += 1;
                Vec::new()
            }
            EventBody::LeftOut { name, message, .. } => {
                self.left_out.0 += 1;
                vec![format!("left out {name}: {message}")]
            }
            EventBody::MoreLeftOut { files } => {
                self.left_out.1 += files;
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

/// What is said of output that was dropped.
pub(crate) fn dropped(dropped_bytes: u64, limit_bytes: u64) -> String {
    format!(
        "warning: {} of output were dropped (limit {})",
        size(dropped_bytes),
        size(limit_bytes)
    )
}

/// Takes out what sets colours (`ESC [ … m`) and leaves the rest.
fn without_colours(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("\x1b[") {
        let (before, sequence) = rest.split_at(start);
        plain.push_str(before);
        let body = &sequence[2..];
        let end = body
            .find(|c: char| !(c.is_ascii_digit() || c == ';'))
            .unwrap_or(body.len());
        match body[end..].strip_prefix('m') {
            Some(after) => rest = after,
            None => {
                plain.push_str("\x1b[");
                rest = body;
            }
        }
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_and_text_stays() {
        assert_eq!(
            without_colours("\x1b[0;31mValueError\x1b[0m: [3m x\x1b[2Jy\x1b["),
            "ValueError: [3m x\x1b[2Jy\x1b["
        );
    }
}
