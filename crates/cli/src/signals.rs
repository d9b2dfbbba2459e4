//! The signals that end a command: Ctrl-C, termination, a closed terminal.

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C: the program may react to it.
    Interrupt,
    /// Everything has to end now, because of this signal.
    Terminate(i32),
}

impl Stop {
    /// The signal's number.
    pub(crate) fn number(self) -> i32 {
        match self {
            Self::Interrupt => Signal::INT.as_raw(),
            Self::Terminate(signal) => signal,
        }
    }
}

/// Listens to them.
pub(crate) struct Signals {
    interrupt: Option<unix::Signal>,
    terminate: Option<unix::Signal>,
    hangup: Option<unix::Signal>,
}

impl Signals {
    /// Begins to listen. Signals that whoever started this command has it ignore (`nohup`, a
    /// shell's background) stay ignored.
    pub(crate) fn listen() -> std::io::Result<Self> {
        let ignored = ignored_mask();
        let listen = |signal: Signal| {
            let is_ignored = ignored & (1 << (signal.as_raw() - 1)) != 0;
            let kind = SignalKind::from_raw(signal.as_raw());
            (!is_ignored).then(|| unix::signal(kind)).transpose()
        };
        Ok(Self {
            interrupt: listen(Signal::INT)?,
            terminate: listen(Signal::TERM)?,
            hangup: listen(Signal::HUP)?,
        })
    }

    /// The next one. Loses none when it is dropped before it is there.
    pub(crate) async fn next(&mut self) -> Stop {
        tokio::select! {
            () = one(&mut self.interrupt) => Stop::Interrupt,
            () = one(&mut self.terminate) => Stop::Terminate(Signal::TERM.as_raw()),
            () = one(&mut self.hangup) => Stop::Terminate(Signal::HUP.as_raw()),
        }
    }
}

async fn one(signal: &mut Option<unix::Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending().await
    }
}

/// One bit for each signal that is ignored, as `/proc` has it; none where that cannot be read.
fn ignored_mask() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
