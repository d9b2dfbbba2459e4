//! The boxes of one launcher: which there are, under which names, and how far each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use glovebox_protocol::ids::SandboxId;

use super::agent_line::AgentLine;
use super::ending::{Body, Ending};
use super::events::Watched;
use super::templates::TemplateKey;
use super::words::Words;
use crate::control::{BoxFacts, BoxKind};
use crate::create::remains::Remains;
use crate::create::report::Progress;
use crate::create::stages::Stages;
use crate::mutation::Omissions;
use crate::sys::clone::Cloned;

/// Names a box for as long as the launcher lives. Never used twice, so that what was meant for
/// one that is gone reaches no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BoxKey(u64);

impl BoxKey {
    pub(super) const fn number(self) -> u64 {
        self.0
    }

    pub(super) const fn of_number(number: u64) -> Self {
        Self(number)
    }
}

/// A box.
#[derive(Debug)]
pub(super) struct Entry {
    /// What its socket and its control groups are called.
    pub(super) name: SandboxId,
    /// Whose it is.
    pub(super) sandbox: Option<SandboxId>,
    /// What the runtime was told of it, once it was.
    pub(super) told: Option<BoxFacts>,
    /// When it has to end, in milliseconds since 1970.
    hard_deadline_ms: Option<i64>,
    pub(super) stage: Stage,
}

/// How far a box is.
#[derive(Debug)]
pub(super) enum Stage {
    /// Its first process runs.
    Runs(Box<Running>),
    /// It is being taken away.
    Ends(Ending),
    /// Not all of it could be taken away.
    Stays(Body),
}

/// A box whose first process runs.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) process: Watched<Cloned>,
    pub(super) remains: Remains,
    pub(super) words: Words,
    pub(super) line: AgentLine,
    pub(super) kind: Rc<BoxKind>,
    pub(super) omissions: Omissions,
    pub(super) facts: BoxFacts,
    /// What it wants of a template.
    pub(super) wish: Wish,
    /// When it last wanted something.
    pub(super) wished: Option<Instant>,
    /// How long it has waited in all until a template was free for it.
    pub(super) waited: Duration,
    /// Whether its agent has said that a kernel takes code.
    pub(super) said_ready: bool,
    /// How often its agent has said in vain what it had said already.
    pub(super) repetitions: u32,
    /// How often a template has tried in vain.
    pub(super) attempts: u32,
    /// The template that its last kernel was copied from.
    pub(super) template: Option<TemplateKey>,
    /// Until the first process has become the agent.
    pub(super) set_up: Option<SetUp>,
}

/// What a box wants of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing.
    None,
    /// A kernel, but not before that moment.
    Later(Instant),
    /// A kernel, since that moment.
    Waits(Instant),
    /// A kernel, which is just being made.
    Copied,
}

/// A first process that sets itself up.
#[derive(Debug)]
pub(super) struct SetUp {
    pub(super) report: Watched<OwnedFd>,
    pub(super) progress: Progress,
    pub(super) stages: Stages,
    /// By when it has to be done.
    pub(super) deadline: Instant,
    /// When the box has to end, once it is made.
    pub(super) hard_deadline_ms: Option<i64>,
    /// The request that waits for it.
    pub(super) request: Option<u64>,
    /// Stays open until it is done: the first process looks whether the launcher lives.
    pub(super) _release: OwnedFd,
}

impl AsFd for Cloned {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// All boxes.
#[derive(Debug, Default)]
pub(super) struct Boxes {
    last: u64,
    all: BTreeMap<BoxKey, Entry>,
    sandboxes: BTreeMap<SandboxId, BoxKey>,
    hard_deadlines: BTreeSet<(i64, BoxKey)>,
}

impl Boxes {
    /// A name for the next box.
    pub(super) const fn next_key(&mut self) -> BoxKey {
        self.last += 1;
        BoxKey(self.last)
    }

    /// Adds a box, with the sandbox that it is, if it is one.
    pub(super) fn add(
        &mut self,
        key: BoxKey,
        name: SandboxId,
        sandbox: Option<SandboxId>,
        stage: Stage,
    ) {
        if let Some(sandbox) = sandbox {
            self.sandboxes.insert(sandbox, key);
        }
        self.all.insert(
            key,
            Entry {
                name,
                sandbox,
                told: None,
                hard_deadline_ms: None,
                stage,
            },
        );
    }

    /// The box that is this sandbox.
    pub(super) fn of_sandbox(&self, sandbox: SandboxId) -> Option<BoxKey> {
        self.sandboxes.get(&sandbox).copied()
    }

    pub(super) fn get_mut(&mut self, key: BoxKey) -> Option<&mut Entry> {
        self.all.get_mut(&key)
    }

    /// A box whose first process runs.
    pub(super) fn running(&mut self, key: BoxKey) -> Option<&mut Running> {
        match &mut self.all.get_mut(&key)?.stage {
            Stage::Runs(running) => Some(running),
            _ => None,
        }
    }

    /// Whether a box is none that anybody has asked for yet.
    pub(super) fn is_nobodys(&self, key: BoxKey) -> bool {
        self.all
            .get(&key)
            .is_some_and(|entry| entry.sandbox.is_none())
    }

    /// Makes a box that was nobody's a sandbox.
    pub(super) fn becomes(&mut self, key: BoxKey, facts: BoxFacts) {
        if let Some(entry) = self.all.get_mut(&key) {
            self.sandboxes.insert(facts.sandbox, key);
            entry.sandbox = Some(facts.sandbox);
            entry.told = Some(facts);
        }
    }

    /// Forgets a box.
    pub(super) fn take_off(&mut self, key: BoxKey) -> Option<Entry> {
        self.set_hard_deadline(key, None);
        let entry = self.all.remove(&key)?;
        if let Some(sandbox) = entry.sandbox {
            self.sandboxes.remove(&sandbox);
        }
        Some(entry)
    }

    /// Sets the time at which a box has to end.
    pub(super) fn set_hard_deadline(&mut self, key: BoxKey, at_ms: Option<i64>) {
        let Some(entry) = self.all.get_mut(&key) else {
            return;
        };
        let before = std::mem::replace(&mut entry.hard_deadline_ms, at_ms);
        if let Some(before) = before {
            self.hard_deadlines.remove(&(before, key));
        }
        if let Some(at_ms) = at_ms {
            self.hard_deadlines.insert((at_ms, key));
        }
    }

    /// The box that has to end next, and when.
    pub(super) fn next_hard_deadline(&self) -> Option<(i64, BoxKey)> {
        self.hard_deadlines.first().copied()
    }

    /// Those that the runtime has been told of, and not yet of their end.
    pub(super) fn told(&self) -> Vec<BoxFacts> {
        let entries = self.sandboxes.values().filter_map(|key| self.all.get(key));
        entries.filter_map(|entry| entry.told.clone()).collect()
    }

    /// Whether none of them is a sandbox.
    pub(super) fn no_sandbox_is_left(&self) -> bool {
        self.sandboxes.is_empty()
    }

    pub(super) fn keys(&self) -> Vec<BoxKey> {
        self.all.keys().copied().collect()
    }

    /// Whether one of them is just being taken away.
    pub(super) fn some_end(&self) -> bool {
        let mut stages = self.all.values().map(|entry| &entry.stage);
        stages.any(|stage| matches!(stage, Stage::Ends(_)))
    }
}
