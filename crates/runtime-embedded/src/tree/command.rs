//! Runs programs of the host for a set-up. The only place of this module tree that starts any.

use std::ffi::OsStr;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::process::{Command, ExitStatus, Stdio};

use super::error::SetupError;

/// How much of a program's output is kept for an error message, in bytes.
const KEPT_OUTPUT: usize = 4 * 1024;

/// The most that a program of a set-up may answer on standard output, in bytes.
const ANSWER: u64 = 16 * 1024 * 1024;

/// What a program printed, and how it ended.
pub(crate) struct Finished {
    pub(crate) status: ExitStatus,
    /// The last bytes of what went to `line` and of standard error.
    pub(crate) output: String,
}

/// Runs a program to its end and gives its standard output.
pub(crate) fn answer(doing: &'static str, command: &mut Command) -> Result<String, SetupError> {
    let start = |source| SetupError::Start {
        doing,
        program: name(command.get_program()),
        source,
    };
    let errors = tempfile::tempfile().map_err(start)?;
    let program = name(command.get_program());
    let start = |source| SetupError::Start {
        doing,
        program: program.clone(),
        source,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(errors.try_clone().map_err(start)?)
        .spawn()
        .map_err(start)?;
    let mut text = String::new();
    let read = match child.stdout.take() {
        Some(stdout) => stdout.take(ANSWER).read_to_string(&mut text).map(|_| ()),
        None => Ok(()),
    };
    let status = child.wait().map_err(start)?;
    read.map_err(start)?;
    if status.success() {
        return Ok(text);
    }
    Err(SetupError::Failed {
        doing,
        status,
        output: tail(errors).map_err(start)?,
    })
}

/// Runs a program to its end and hands each line of its output on.
pub(crate) fn follow(
    doing: &'static str,
    command: &mut Command,
    mut line: impl FnMut(&str),
) -> Result<Finished, SetupError> {
    let program = name(command.get_program());
    let start = |source| SetupError::Start {
        doing,
        program: program.clone(),
        source,
    };
    let (reader, writer) = io::pipe().map_err(start)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer.try_clone().map_err(start)?)
        .stderr(writer)
        .spawn()
        .map_err(start)?;
    // The command keeps our ends of the pipe; without this the reader would never see its end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut output = String::new();
    let mut reader = BufReader::new(reader);
    let mut bytes = Vec::new();
    while reader.read_until(b'\n', &mut bytes).map_err(start)? > 0 {
        let text = String::from_utf8_lossy(&bytes);
        line(text.trim_end());
        output.push_str(&text);
        bytes.clear();
        if output.len() > 2 * KEPT_OUTPUT {
            output = last(&output).to_owned();
        }
    }
    let status = child.wait().map_err(start)?;
    Ok(Finished {
        status,
        output: last(&output).trim_end().to_owned(),
    })
}

fn name(program: &OsStr) -> String {
    program.to_string_lossy().into_owned()
}

fn tail(mut file: std::fs::File) -> io::Result<String> {
    use std::io::Seek as _;
    file.rewind()?;
    let mut bytes = Vec::new();
    file.take(ANSWER).read_to_end(&mut bytes)?;
    Ok(last(&String::from_utf8_lossy(&bytes)).trim_end().to_owned())
}

/// The last part of a text, from a line's beginning where there is one.
fn last(text: &str) -> &str {
    let from = text.len().saturating_sub(KEPT_OUTPUT);
    let from = (from..text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len());
    let cut = &text[from..];
    if from == 0 {
        cut
    } else {
        cut.split_once('\n').map_or(cut, |(_, rest)| rest)
    }
}
