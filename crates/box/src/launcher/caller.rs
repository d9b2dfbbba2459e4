//! The runtime that asks for boxes: the one that started the launcher, and where the launcher
//! stays, those that come after it, one at a time.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with};

use super::events::{Events, Source};
use super::line::{Line, Peer};
use super::outer::say;
use crate::control::{Fault, FromLauncher, LauncherConfig, PodFacts};

/// How long a launcher that has no sandbox waits for the next runtime.
const LINGER: Duration = Duration::from_secs(60);

/// How long one that came in may take to say who it is. Others wait behind it.
const GREETING_LIMIT: Duration = Duration::from_secs(5);

/// How many ends are kept for the next runtime.
const MISSED: usize = 10_000;

/// Whoever asks for boxes.
pub(super) struct Caller<'a> {
    line: &'a mut Line,
    stage: Stage,
    door: Option<OwnedFd>,
    config: LauncherConfig,
    facts: PodFacts,
    /// What the next one is to be told.
    missed: VecDeque<FromLauncher>,
    wants_room: bool,
}

/// How far the one at the line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It is served.
    Served,
    /// It has closed the line, and what it said before is still to be done.
    Leaves,
    /// It has come in, since then, and has not said yet who it is.
    Came(Instant),
    /// There is none, since then.
    Gone(Instant),
}

impl<'a> Caller<'a> {
    /// The one that started the launcher, and is served already.
    pub(super) const fn new(
        line: &'a mut Line,
        door: Option<OwnedFd>,
        config: LauncherConfig,
        facts: PodFacts,
    ) -> Self {
        Self {
            line,
            stage: Stage::Served,
            door,
            config,
            facts,
            missed: VecDeque::new(),
            wants_room: false,
        }
    }

    /// Begins to listen to it.
    ///
    /// # Errors
    /// When the kernel has no room for more.
    pub(super) fn watch(&self, events: &Events) -> io::Result<()> {
        match self.line.socket() {
            Some(socket) => events.watch_for_good(socket, Source::Runtime),
            None => Ok(()),
        }
    }

    /// What it asks for next.
    ///
    /// # Errors
    /// When the kernel has no room for more.
    pub(super) fn next_request(&mut self, events: &Events) -> io::Result<Option<Vec<u8>>> {
        match self.stage {
            Stage::Served => Ok(self.line.next()),
            Stage::Leaves => {
                let request = self.line.next();
                if request.is_none() {
                    self.goes(events)?;
                }
                Ok(request)
            }
            Stage::Came(_) | Stage::Gone(_) => Ok(None),
        }
    }

    /// Reads what it has said.
    ///
    /// # Errors
    /// In a launcher that does not stay: when the line is broken.
    pub(super) fn receive(&mut self, events: &Events) -> io::Result<()> {
        if matches!(self.stage, Stage::Leaves | Stage::Gone(_)) {
            return Ok(());
        }
        match self.line.receive() {
            Ok(Peer::Open) => self.greet(events),
            Ok(Peer::Closed) if self.stage == Stage::Served => {
                self.stage = Stage::Leaves;
                Ok(())
            }
            Ok(Peer::Closed) => self.goes(events),
            Err(error) => self.breaks(events, error),
        }
    }

    /// Lets the next one in.
    ///
    /// # Errors
    /// When the kernel has no room for more.
    pub(super) fn open_door(&mut self, events: &Events) -> io::Result<()> {
        let (Some(door), Stage::Gone(_)) = (&self.door, self.stage) else {
            return Ok(());
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = match accept_with(door, flags) {
            Ok(socket) => socket,
            // It went away again; or it has to wait until a box gives descriptors back, which is
            // no reason to end the boxes.
            Err(
                Errno::AGAIN
                | Errno::INTR
                | Errno::CONNABORTED
                | Errno::MFILE
                | Errno::NFILE
                | Errno::NOBUFS
                | Errno::NOMEM,
            ) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        events.leave_alone(door);
        *self.line = Line::new(socket)?;
        self.stage = Stage::Came(Instant::now());
        self.watch(events)
    }

    /// Tells it what has happened; what it cannot be told now and the next one has to know is
    /// kept.
    ///
    /// # Errors
    /// In a launcher that does not stay: when the line is broken.
    pub(super) fn tell(&mut self, events: &Events, answers: Vec<FromLauncher>) -> io::Result<()> {
        for answer in answers {
            if self.stage != Stage::Served {
                self.keep(answer);
            } else if let Err(error) = self.line.send(&answer) {
                self.keep(answer);
                self.breaks(events, error)?;
            }
        }
        if matches!(self.stage, Stage::Leaves | Stage::Gone(_)) {
            return Ok(());
        }
        if let Err(error) = self.line.flush() {
            return self.breaks(events, error);
        }
        if self.line.waits_for_room() != self.wants_room
            && let Some(socket) = self.line.socket()
        {
            self.wants_room = self.line.waits_for_room();
            events.also_for_room(socket, Source::Runtime, self.wants_room)?;
        }
        Ok(())
    }

    /// When there has to be looked whether the launcher is of any use still.
    pub(super) fn patience(&self) -> Option<Instant> {
        match self.stage {
            Stage::Gone(_) if self.door.is_none() => Some(Instant::now()),
            // Once that has passed, only the end of the last sandbox changes anything.
            Stage::Gone(since) => Some(since + LINGER).filter(|until| *until > Instant::now()),
            Stage::Came(since) => Some(since + GREETING_LIMIT),
            Stage::Leaves => Some(Instant::now()),
            Stage::Served => None,
        }
    }

    /// Sends one away that came in and says nothing.
    ///
    /// # Errors
    /// When the kernel has no room for more.
    pub(super) fn look_at_greeting(&mut self, events: &Events) -> io::Result<()> {
        match self.stage {
            Stage::Came(since) if since.elapsed() >= GREETING_LIMIT => {
                say("a runtime came in and did not say who it is");
                self.goes(events)
            }
            _ => Ok(()),
        }
    }

    /// Whether nobody will ask for anything any more.
    pub(super) fn is_done(&self, no_sandbox_is_left: bool) -> bool {
        match self.stage {
            Stage::Gone(since) => {
                self.door.is_none() || (no_sandbox_is_left && since.elapsed() >= LINGER)
            }
            Stage::Served | Stage::Leaves | Stage::Came(_) => false,
        }
    }

    /// Hears who it is that came in.
    fn greet(&mut self, events: &Events) -> io::Result<()> {
        if !matches!(self.stage, Stage::Came(_)) {
            return Ok(());
        }
        let Some(text) = self.line.next() else {
            return Ok(());
        };
        let known = serde_json::from_slice::<LauncherConfig>(&text)
            .map_err(|error| Fault::invalid("greeting a runtime", error))
            .and_then(|theirs| self.compare(&theirs));
        if let Err(fault) = known {
            say(&fault);
            let told = self.line.send(&FromLauncher::Failed { id: 0, fault });
            return told
                .and_then(|()| self.goes(events))
                .or_else(|_| self.goes(events));
        }
        self.stage = Stage::Served;
        let ready = FromLauncher::Ready(self.facts.clone());
        let missed = std::mem::take(&mut self.missed);
        self.tell(events, std::iter::once(ready).chain(missed).collect())
    }

    fn compare(&self, theirs: &LauncherConfig) -> Result<(), Fault> {
        if *theirs == self.config {
            return Ok(());
        }
        Err(Fault::invalid(
            "greeting a runtime",
            "it is configured otherwise than the one that started this launcher",
        )
        .with_fix("end the sandboxes that are left, or give it the same data folder, installation and accepted protections"))
    }

    fn keep(&mut self, answer: FromLauncher) {
        // Answers are for whoever asked, and that one is gone.
        if matches!(answer, FromLauncher::Ended { .. }) && self.door.is_some() {
            if self.missed.len() == MISSED {
                self.missed.pop_front();
            }
            self.missed.push_back(answer);
        }
    }

    fn breaks(&mut self, events: &Events, error: io::Error) -> io::Result<()> {
        if self.door.is_none() {
            return Err(error);
        }
        say(format_args!("the line to the runtime: {error}"));
        self.goes(events)
    }

    /// Closes the line, and waits at the door for the next one.
    fn goes(&mut self, events: &Events) -> io::Result<()> {
        if matches!(self.stage, Stage::Gone(_)) {
            return Ok(());
        }
        self.stage = Stage::Gone(Instant::now());
        self.wants_room = false;
        // A first process that is just being made holds a copy of the line for a moment.
        if let Some(socket) = self.line.socket() {
            events.leave_alone(socket);
        }
        match &self.door {
            None => Ok(()),
            Some(door) => {
                self.line.let_go();
                events.watch_for_good(door, Source::Door)
            }
        }
    }
}
