//! Stands between a runtime and its launcher, and between the runtime and the agents, for tests
//! that count what is said: `eavesdropper LAUNCHER LOG`, with the line to the runtime as standard
//! input.
//!
//! Every line and every piece is written to the log before it is passed on: whoever has got an
//! answer finds in the log all that led to it.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};

/// A line of JSON for each thing that is heard.
struct Log {
    file: Mutex<File>,
    /// The folder that it is in, which also takes the sockets.
    folder: PathBuf,
}

impl Log {
    fn write(&self, heard: &Value) -> io::Result<()> {
        let mut file = self
            .file
            .lock()
            .map_err(|_| io::Error::other("a listener panicked"))?;
        file.write_all(format!("{heard}\n").as_bytes())
    }
}

fn main() -> io::Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(launcher), Some(log)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: eavesdropper LAUNCHER LOG"));
    };
    let log = PathBuf::from(log);
    let log: &'static Log = Box::leak(Box::new(Log {
        file: Mutex::new(fs_err::File::create(&log)?.into_parts().0),
        folder: log.parent().unwrap_or(Path::new("")).to_owned(),
    }));
    let runtime = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(launcher)
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .spawn()?;

    let (from_runtime, to_launcher) = (runtime.try_clone()?, ours.try_clone()?);
    thread::spawn(move || {
        let done = pass_lines("request", from_runtime, &to_launcher, log);
        // The runtime closed its end, or the launcher did: either way nothing more comes.
        let _ = to_launcher.shutdown(std::net::Shutdown::Write);
        done
    });
    pass_lines("answer", ours, &runtime, log)?;
    let status = child.wait()?;
    Ok(u8::try_from(status.code().unwrap_or(1)).map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Passes lines on until there are no more.
fn pass_lines(
    what: &str,
    from: UnixStream,
    mut to: &UnixStream,
    log: &'static Log,
) -> io::Result<()> {
    for line in BufReader::new(from).split(b'\n') {
        let mut line = line?;
        let mut said: Value = serde_json::from_slice(&line).unwrap_or(Value::Null);
        log.write(&json!({"heard": what, "bytes": line.len() + 1, "said": said}))?;
        if said["is"] == "created" {
            let text = |field: &str| said["facts"][field].as_str().unwrap_or_default().to_owned();
            let instead = log.folder.join(text("sandbox"));
            listen(&instead, text("socket"), log)?;
            said["facts"]["socket"] = json!(instead);
            line = said.to_string().into_bytes();
        }
        line.push(b'\n');
        to.write_all(&line)?;
    }
    Ok(())
}

/// Takes connections in an agent's place.
fn listen(instead: &Path, agent: String, log: &'static Log) -> io::Result<()> {
    let listener = UnixListener::bind(instead)?;
    thread::spawn(move || -> io::Result<()> {
        loop {
            let (client, _) = listener.accept()?;
            log.write(&json!({"heard": "connection"}))?;
            let agent = UnixStream::connect(&agent)?;
            let (from, to) = (client.try_clone()?, agent.try_clone()?);
            thread::spawn(move || pass_bytes("to_agent", from, to, log));
            thread::spawn(move || pass_bytes("from_agent", agent, client, log));
        }
    });
    Ok(())
}

fn pass_bytes(
    what: &str,
    mut from: UnixStream,
    mut to: UnixStream,
    log: &'static Log,
) -> io::Result<()> {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            return to.shutdown(std::net::Shutdown::Write);
        }
        log.write(&json!({"heard": what, "bytes": count}))?;
        to.write_all(&piece[..count])?;
    }
}
