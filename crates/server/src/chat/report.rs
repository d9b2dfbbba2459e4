//! What came of a step, gathered from its events and bounded: for a model, and for the thread's past.

use glovebox_protocol::event::{EventBody, Note, Outcome, Shown};
use glovebox_protocol::file::FileName;

use super::turn::{StepReport, ThreadFile};

/// How many characters of output are kept: the last ones.
const TAIL: usize = 4_000;

/// How many characters of a value are kept: the first ones.
const VALUE: usize = 4_000;

/// How many characters of an error are kept.
const ERROR: usize = 2_000;

/// How many files that stayed in the sandbox are named.
const LEFT_OUT: usize = 20;

/// A step's report as it grows.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    output: Tail,
    result_text: Option<String>,
    error: Option<(String, String)>,
    pub(super) files: Vec<ThreadFile>,
    left_out: Vec<(String, String)>,
    not_collected: Option<String>,
    pub(super) notices: Vec<String>,
}

/// How a step ended, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) is_success: bool,
    pub(super) summary: String,
    pub(super) fix: Option<String>,
    /// The stable word of what kept it from running, where something did.
    pub(super) code: Option<String>,
}

/// The end of what was printed.
#[derive(Debug, Default)]
struct Tail {
    text: String,
    cut_bytes: u64,
}

impl Tail {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        let over = self.text.chars().count().saturating_sub(TAIL);
        // Cut in large pieces, or every character would move all the others.
        if over > TAIL {
            self.cut(over);
        }
    }

    fn cut(&mut self, characters: usize) {
        let at = self.text.char_indices().nth(characters);
        let at = at.map_or(self.text.len(), |(at, _)| at);
        self.cut_bytes += at as u64;
        self.text.drain(..at);
    }

    fn finish(mut self) -> (String, u64) {
        let over = self.text.chars().count().saturating_sub(TAIL);
        if over > 0 {
            self.cut(over);
        }
        (self.text, self.cut_bytes)
    }
}

impl Gathered {
    /// Takes what happened.
    pub(super) fn take(&mut self, event: &EventBody) {
        match event {
            EventBody::Stdout(output) | EventBody::Stderr(output) => {
                self.output
                    .push(&plain(&String::from_utf8_lossy(&output.0)));
            }
            EventBody::OutputDropped { dropped_bytes, .. } => {
                self.output.cut_bytes += dropped_bytes;
            }
            EventBody::Result { shown, .. } => {
                self.result_text = text_of(shown).or(self.result_text.take());
            }
            EventBody::Display(shown) => {
                if let Some(text) = text_of(shown) {
                    self.output.push(&text);
                    self.output.push("\n");
                }
            }
            EventBody::Error {
                name,
                value,
                traceback,
            } => self.error = Some((first(name, ERROR), error_text(value, traceback))),
            EventBody::LeftOut { name, message, .. } => self.leave_out(name, message),
            EventBody::MoreLeftOut { files } => self.notices.push(format!(
                "{files} more files stayed in the sandbox than are listed."
            )),
            EventBody::NotCollected { message } => self.not_collected = Some(message.clone()),
            _ => {}
        }
    }

    fn leave_out(&mut self, name: &FileName, message: &str) {
        if self.left_out.len() < LEFT_OUT {
            self.left_out.push((name.for_display(), message.to_owned()));
        }
    }

    /// The report of a step that ended so.
    pub(super) fn report(self, step: u32, verdict: Verdict) -> StepReport {
        let (output_tail, output_cut_bytes) = self.output.finish();
        StepReport {
            step,
            is_success: verdict.is_success,
            summary: verdict.summary,
            fix: verdict.fix,
            output_tail,
            output_cut_bytes,
            result_text: self.result_text,
            error: self.error,
            files: self.files,
            left_out: self.left_out,
            not_collected: self.not_collected,
            notices: self.notices,
        }
    }
}

impl StepReport {
    /// The same in words, for the thread's past.
    pub(crate) fn in_words(&self) -> String {
        let mut words = format!("The code {}.", self.summary);
        let mut add = |title: &str, text: &str| {
            if !text.trim().is_empty() {
                words.push_str(&format!("\n{title}: {}", text.trim_end()));
            }
        };
        add("Output", &self.output_tail);
        add("Value", self.result_text.as_deref().unwrap_or_default());
        if let Some((name, text)) = &self.error {
            add(name, text);
        }
        let files: Vec<_> = self.files.iter().map(|file| file.name.as_str()).collect();
        add("Files", &files.join(", "));
        add(
            "Files were not collected",
            self.not_collected.as_deref().unwrap_or_default(),
        );
        words
    }
}

/// The text form of a value, as far as it is kept.
fn text_of(shown: &Shown) -> Option<String> {
    let text = shown.data.get("text/plain")?.as_str()?;
    Some(first(&plain(text), VALUE))
}

fn first(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// What an exception says, with the lines of the person's own code that it went through.
fn error_text(value: &str, traceback: &[String]) -> String {
    let mut text = first(value, ERROR);
    let own = traceback
        .iter()
        .map(|entry| plain(entry))
        .filter(|entry| entry.contains("Cell In[") || entry.contains("<ipython-input"));
    for entry in own {
        let room = ERROR.saturating_sub(text.chars().count());
        if room == 0 {
            break;
        }
        text.push('\n');
        text.push_str(&first(entry.trim_end(), room));
    }
    text
}

/// Text without what terminals take for colours and movements.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\u{1b}' {
            plain.push(character);
            continue;
        }
        // ESC [ … letter; ESC ] … BEL; ESC and one more.
        match rest.next() {
            Some('[') => while rest.next_if(|next| !next.is_ascii_alphabetic()).is_some() {},
            Some(']') => while rest.next_if(|next| *next != '\u{7}').is_some() {},
            _ => continue,
        }
        rest.next();
    }
    plain
}

/// How code ended, in words for people, and what they can do about it.
pub(super) fn verdict(outcome: &Outcome, notes: &[Note]) -> Verdict {
    let mut summary = outcome.to_string();
    for note in notes {
        summary.push_str("; ");
        summary.push_str(&note.to_string());
    }
    let is_full = notes
        .iter()
        .any(|note| matches!(note, Note::DiskFull { .. }));
    Verdict {
        is_success: outcome.is_success(),
        summary,
        code: None,
        fix: if is_full {
            Some("delete files of the sandbox that are not needed, then run it again".into())
        } else {
            fix(outcome).map(Into::into)
        },
    }
}

const fn fix(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::OutOfMemory { .. } => {
            Some("work on less data at once, or ask a system admin for a larger class")
        }
        Outcome::TimeLimit { killed: false, .. } => {
            Some("do less in one step; variables are still there")
        }
        Outcome::TimeLimit { killed: true, .. } => Some("do less in one step; variables are gone"),
        Outcome::KernelDied { .. } | Outcome::KernelBroken { .. } => {
            Some("run it again: a fresh kernel is started, and variables are gone")
        }
        Outcome::Raised { .. }
        | Outcome::Exited { .. }
        | Outcome::Signaled { .. }
        | Outcome::Cancelled { .. }
        | Outcome::Succeeded { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use glovebox_protocol::event::Output;

    use super::*;

    fn printed(text: &str) -> EventBody {
        EventBody::Stdout(Output(text.as_bytes().to_vec().into()))
    }

    #[test]
    fn of_long_output_the_end_is_kept_and_the_rest_counted() {
        let mut gathered = Gathered::default();
        for n in 0..5_000 {
            gathered.take(&printed(&format!("{n:04}\n")));
        }
        let report = gathered.report(1, verdict(&Outcome::Succeeded { execution_count: 1 }, &[]));
        assert_eq!(report.output_tail.chars().count(), TAIL);
        assert!(report.output_tail.ends_with("4999\n"));
        assert_eq!(report.output_cut_bytes, 25_000 - TAIL as u64);
    }

    #[test]
    fn what_terminals_act_upon_is_taken_out() {
        assert_eq!(plain("\u{1b}[0;31mred\u{1b}[0m!"), "red!");
        assert_eq!(plain("\u{1b}]0;title\u{7}text\u{1b}"), "text");
        assert_eq!(plain("a\u{1b}[2Jb"), "ab");
    }

    #[test]
    fn an_error_has_the_lines_of_ones_own_code_only() {
        let mut gathered = Gathered::default();
        gathered.take(&EventBody::Error {
            name: "KeyError".into(),
            value: "'region'".into(),
            traceback: vec![
                "\u{1b}[31m-----\u{1b}[39m".into(),
                "\u{1b}[36mCell In[2], line 1\u{1b}[39m\n----> 1 table['region']".into(),
                "File /opt/python/pandas/frame.py:4102\n deep inside".into(),
            ],
        });
        let outcome = Outcome::Raised {
            execution_count: 2,
            name: "KeyError".into(),
        };
        let report = gathered.report(1, verdict(&outcome, &[]));
        let (name, text) = report.error.unwrap();
        assert_eq!(name, "KeyError");
        assert_eq!(
            text,
            "'region'\nCell In[2], line 1\n----> 1 table['region']"
        );
        assert!(!report.is_success);
    }

    #[test]
    fn what_was_not_collected_is_known() {
        let mut gathered = Gathered::default();
        gathered.take(&EventBody::NotCollected {
            message: "the sandbox did not answer".into(),
        });
        gathered.take(&EventBody::MoreLeftOut { files: 7 });
        let report = gathered.report(1, verdict(&Outcome::Succeeded { execution_count: 1 }, &[]));
        assert!(report.in_words().contains("did not answer"));
        let not_collected = report.not_collected.unwrap();
        assert_eq!(not_collected, "the sandbox did not answer");
        assert!(report.notices[0].starts_with("7 more files"));
    }

    #[test]
    fn what_can_be_done_is_said() {
        let full = [Note::DiskFull {
            limit_bytes: 1 << 30,
            limit_inodes: 9,
        }];
        let outcome = Outcome::Raised {
            execution_count: 1,
            name: "OSError".into(),
        };
        let verdict = verdict(&outcome, &full);
        assert!(verdict.summary.contains("the workspace is full"));
        assert!(verdict.fix.unwrap().contains("delete files"));
    }
}
