//! What can be known and done of a kernel without waiting for whoever uses it.

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::kernel::{KernelInfo, KernelState};

use super::live::{KernelEnd, Live};
use crate::process::{Asked, Child};

/// The facts. They change under a lock that is never held across a wait.
pub(crate) struct Facts {
    pub(crate) state: KernelState,
    pub(crate) generation: u32,
    language: String,
    start: Option<Start>,
    last_end: Option<String>,
    /// Whether the caller knows already that the last kernel is gone.
    told: bool,
    pub(crate) child: Option<Child>,
    /// What was asked of the present call.
    pub(crate) asked: Asked,
    /// Why the kernel was ended from here, where it was.
    pub(crate) end_reason: Option<String>,
    /// The last kernel whose end is in here.
    ended_generation: u32,
}

impl Facts {
    pub(crate) const fn new() -> Self {
        Self {
            state: KernelState::Absent,
            generation: 0,
            language: String::new(),
            start: None,
            last_end: None,
            told: true,
            child: None,
            asked: Asked::Nothing,
            end_reason: None,
            ended_generation: 0,
        }
    }

    pub(crate) fn info(&self) -> KernelInfo {
        KernelInfo {
            state: self.state,
            generation: self.generation,
            language: self.language.clone(),
            start: self.start,
            last_end: self.last_end.clone(),
        }
    }

    /// A kernel is being made. Nobody can signal it before it has a process.
    pub(crate) fn note_start(&mut self, child: Option<Child>) {
        self.state = KernelState::Starting;
        self.end_reason = None;
        self.child = child;
    }

    /// Takes down that there is a kernel, and gives its number.
    pub(crate) fn note_ready(&mut self, live: &Live) -> u32 {
        self.state = KernelState::Idle;
        self.generation += 1;
        self.language.clone_from(&live.language);
        self.start = Some(live.start);
        self.generation
    }

    /// Takes down that no kernel came up.
    pub(crate) fn note_failure(&mut self, why: String) {
        self.state = KernelState::Absent;
        self.child = None;
        self.last_end = Some(why);
    }

    /// Takes down how a kernel ended, once.
    pub(crate) fn note_end(&mut self, generation: u32, end: &KernelEnd) {
        if self.ended_generation >= generation {
            return;
        }
        self.ended_generation = generation;
        let reason = self.end_reason.take();
        self.last_end = Some(reason.unwrap_or_else(|| format!("the kernel {}", end.outcome)));
        self.told = false;
        self.child = None;
        self.start = None;
        self.state = KernelState::Absent;
    }

    /// Why the last kernel is gone, if the caller does not know. Asked once it is told.
    pub(crate) fn tell_of_end(&mut self) -> Option<String> {
        let untold = !std::mem::replace(&mut self.told, true);
        self.last_end.clone().filter(|_| untold)
    }
}
