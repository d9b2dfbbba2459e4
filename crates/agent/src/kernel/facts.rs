//! What can be known and done of a kernel without waiting for whoever uses it.

use std::collections::VecDeque;

use glovebox_protocol::agent_config::Start;
use glovebox_protocol::ids::ExecutionId;
use glovebox_protocol::kernel::{KernelInfo, KernelState};
use glovebox_protocol::process::Cancel;

use super::live::{KernelEnd, Live};
use crate::process::{Asked, Child};

/// How many calls are remembered that were to be ended before they came.
const MAX_EARLY: usize = 64;

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
    /// The present call.
    current: Option<ExecutionId>,
    /// What was asked of the present call.
    pub(crate) asked: Asked,
    /// What was asked of calls that had not come yet, the oldest first.
    early: VecDeque<(ExecutionId, Asked)>,
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
            current: None,
            asked: Asked::Nothing,
            early: VecDeque::new(),
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

    /// A call has come. What was asked of it before holds.
    pub(crate) fn begin_call(&mut self, call: ExecutionId) {
        self.current = Some(call);
        let early = self.early.iter().position(|(id, _)| *id == call);
        let early = early.and_then(|at| self.early.remove(at));
        self.asked = early.map_or(Asked::Nothing, |(_, asked)| asked);
    }

    /// The present call is over.
    pub(crate) fn end_call(&mut self) {
        self.current = None;
    }

    /// Whether this is the present call.
    pub(crate) fn is_current(&self, call: ExecutionId) -> bool {
        self.current == Some(call)
    }

    /// Takes down what is asked of the present call, or of the kernel where there is none.
    pub(crate) fn ask(&mut self, how: Cancel) {
        self.asked = asked(how).max(self.asked);
        if how == Cancel::Kill && self.child.is_some() {
            self.end_reason = Some("the kernel was killed on request".into());
        }
    }

    /// Takes down what is asked of a call that has not come yet.
    pub(crate) fn ask_early(&mut self, call: ExecutionId, how: Cancel) {
        if let Some((_, earlier)) = self.early.iter_mut().find(|(id, _)| *id == call) {
            *earlier = asked(how).max(*earlier);
            return;
        }
        if self.early.len() == MAX_EARLY {
            self.early.pop_front();
        }
        self.early.push_back((call, asked(how)));
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

const fn asked(how: Cancel) -> Asked {
    match how {
        Cancel::Interrupt => Asked::Interrupt,
        Cancel::Kill => Asked::Kill,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_of_a_call_that_has_not_come_holds_for_that_call_alone() {
        let mut facts = Facts::new();
        let (one, other) = (ExecutionId::new(), ExecutionId::new());
        facts.ask_early(one, Cancel::Kill);
        facts.ask_early(one, Cancel::Interrupt);
        facts.begin_call(other);
        assert_eq!(facts.asked, Asked::Nothing);
        facts.end_call();
        facts.begin_call(one);
        assert_eq!(facts.asked, Asked::Kill);
        facts.end_call();
        facts.begin_call(one);
        assert_eq!(facts.asked, Asked::Nothing, "it was asked once");
    }

    #[test]
    fn calls_that_never_come_are_forgotten() {
        let mut facts = Facts::new();
        let first = ExecutionId::new();
        facts.ask_early(first, Cancel::Interrupt);
        for _ in 0..MAX_EARLY {
            facts.ask_early(ExecutionId::new(), Cancel::Interrupt);
        }
        assert_eq!(facts.early.len(), MAX_EARLY);
        facts.begin_call(first);
        assert_eq!(facts.asked, Asked::Nothing);
    }
}
