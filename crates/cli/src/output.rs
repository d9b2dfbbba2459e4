//! Writes to standard output and standard error, on a thread of its own.
//!
//! A reader that is slow holds up this thread and then, through a short queue, the program; it
//! never holds up the signals that this command listens to. A program's bytes are written as they
//! are; what a terminal would obey in lines of this command's own is escaped.

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use crate::failure::{Failure, reason};
use crate::progress::Progress;
use crate::words::for_terminal;

/// Chunks that may wait to be written.
const QUEUE: usize = 8;

enum Message {
    /// Bytes for standard output.
    Out(Bytes),
    /// Bytes for standard error.
    Err(Bytes),
    /// A line of this command's own for standard error.
    Line(String),
}

/// Why output cannot be written.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    /// Nobody reads it any more.
    Unread,
    /// Another reason, such as a full disk.
    Broken(String),
}

/// Where output goes.
pub(crate) struct OutputThread {
    sender: mpsc::Sender<Message>,
    /// Why nothing more can be written, once that is so; closed when the thread has ended.
    fault: watch::Receiver<Option<Fault>>,
}

impl OutputThread {
    /// Starts the thread.
    pub(crate) fn start(progress: Arc<Progress>) -> Self {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (told, fault) = watch::channel(None);
        std::thread::spawn(move || write_all(receiver, &told, &progress));
        Self { sender, fault }
    }

    /// Writes to standard output.
    pub(crate) async fn out(&self, bytes: Bytes) -> Result<(), Failure> {
        self.send(Message::Out(bytes)).await
    }

    /// Writes to standard error what the program wrote there.
    pub(crate) async fn err(&self, bytes: Bytes) -> Result<(), Failure> {
        self.send(Message::Err(bytes)).await
    }

    /// Writes a line of this command's own to standard error. Nobody has to read it.
    pub(crate) async fn line(&self, line: impl AsRef<str>) {
        let line = for_terminal(line.as_ref());
        // The thread ends only when the output is gone, and then so are our lines.
        let _ = self.sender.send(Message::Line(line)).await;
    }

    async fn send(&self, message: Message) -> Result<(), Failure> {
        if self.fault.borrow().is_some() {
            return Err(Failure::OutputGone);
        }
        self.sender
            .send(message)
            .await
            .map_err(|_| Failure::OutputGone)
    }

    /// Waits until everything is written. Fails when not all of it could be.
    pub(crate) async fn finish(self) -> Result<(), Failure> {
        let Self { sender, mut fault } = self;
        drop(sender);
        // The thread drops its end when it is through.
        while fault.changed().await.is_ok() {}
        match &*fault.borrow() {
            None => Ok(()),
            Some(Fault::Unread) => Err(Failure::OutputGone),
            Some(Fault::Broken(reason)) => {
                Err(Failure::machine("writing the output", reason.as_str()))
            }
        }
    }
}

fn write_all(
    mut receiver: mpsc::Receiver<Message>,
    told: &watch::Sender<Option<Fault>>,
    progress: &Progress,
) {
    // What goes into a file neither disturbs the progress line nor leaves a line unfinished.
    let (shows_out, shows_err) = (
        std::io::stdout().is_terminal(),
        std::io::stderr().is_terminal(),
    );
    while let Some(message) = receiver.blocking_recv() {
        let shows = match &message {
            Message::Out(_) => shows_out,
            Message::Err(_) | Message::Line(_) => shows_err,
        };
        if shows {
            progress.before_output();
        }
        let (written, ends_line) = match &message {
            Message::Out(bytes) => (to_stdout(bytes), bytes.ends_with(b"\n")),
            Message::Err(bytes) => (to_stderr(bytes), bytes.ends_with(b"\n")),
            Message::Line(line) => {
                let gap = if progress.is_mid_line() { "\n" } else { "" };
                // The person may have closed standard error; that is no reason to stop.
                let _ = to_stderr(format!("{gap}{line}\n").as_bytes());
                (Ok(()), true)
            }
        };
        if shows {
            progress.after_output(ends_line);
        }
        if let Err(error) = written {
            told.send_replace(Some(match error.kind() {
                ErrorKind::BrokenPipe => Fault::Unread,
                _ => Fault::Broken(reason(&error)),
            }));
        }
    }
}

fn to_stdout(bytes: &[u8]) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(bytes)?;
    stdout.flush()
}

fn to_stderr(bytes: &[u8]) -> std::io::Result<()> {
    std::io::stderr().lock().write_all(bytes)
}
