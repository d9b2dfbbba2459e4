//! The boxes of one launcher: making, removing, listing them, and noticing their end.

use std::collections::BTreeMap;
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use glovebox_protocol::agent_config::AgentIds;
use glovebox_protocol::ids::SandboxId;
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::outer::say;
use crate::control::{BoxEnd, BoxFacts, BoxSpec, Fault};
use crate::create::parent::{Made, Surroundings, end, make};
use crate::ids::pod::PodIds;
use crate::ids::slots::Slots;

/// How long the remains of a box are given to go away.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(10);

/// How much of what an agent says on its standard error is passed on, in bytes.
const WORDS_BUDGET: usize = 64 * 1024;

/// All boxes.
pub(super) struct Boxes {
    surroundings: Surroundings,
    slots: Slots,
    ids: PodIds,
    live: BTreeMap<SandboxId, LiveBox>,
}

/// A box that lives.
pub(super) struct LiveBox {
    facts: BoxFacts,
    made: Made,
    hard_deadline_ms: Option<i64>,
    words_left: usize,
    words_closed: bool,
    /// Its end has been told. It is in the list only because not all of it could be taken away.
    ended: bool,
}

impl LiveBox {
    /// Readable once the box's first process has ended.
    pub(super) fn process(&self) -> &OwnedFd {
        &self.made.process.pidfd
    }

    /// Readable when the agent has said something; `None` when it cannot say any more.
    pub(super) fn words(&self) -> Option<&OwnedFd> {
        (!self.words_closed).then_some(&self.made.words)
    }
}

impl Boxes {
    pub(super) fn new(surroundings: Surroundings, slots: Slots, ids: PodIds) -> Self {
        Self {
            surroundings,
            slots,
            ids,
            live: BTreeMap::new(),
        }
    }

    /// Makes a box.
    ///
    /// # Errors
    /// What stands in the way; nothing is left.
    pub(super) fn create(&mut self, spec: &BoxSpec) -> Result<BoxFacts, Fault> {
        if self.live.contains_key(&spec.sandbox) {
            return Err(Fault::invalid(
                format!("making the box {}", spec.sandbox),
                "there is one with this id",
            ));
        }
        let made = make(&self.surroundings, &mut self.slots, spec)?;
        let host = |inside| self.ids.host_user(inside).unwrap_or(u32::MAX);
        let facts = BoxFacts {
            sandbox: spec.sandbox,
            socket: made.socket.clone(),
            pid: made.host_pid,
            ids: made.ids.inside,
            host_ids: AgentIds {
                agent: host(made.ids.pod.agent),
                workload: host(made.ids.pod.workload),
            },
            was_ready: false,
            stages_us: made.stages_us.clone(),
        };
        self.live.insert(
            spec.sandbox,
            LiveBox {
                facts: facts.clone(),
                made,
                hard_deadline_ms: spec.hard_deadline_ms,
                words_left: WORDS_BUDGET,
                words_closed: false,
                ended: false,
            },
        );
        Ok(facts)
    }

    /// Removes a box, if there is one.
    ///
    /// # Errors
    /// When something of it could not be taken away; it stays in the list and can be tried again.
    pub(super) fn remove(&mut self, sandbox: SandboxId) -> Result<(), Fault> {
        let Some(live) = self.live.get_mut(&sandbox) else {
            return Ok(());
        };
        end(&live.made.process)?;
        // From here on there is nothing to wait for: neither an end nor a deadline.
        live.ended = true;
        live.made.remains.clear(
            &mut self.slots,
            &self.surroundings.run_folder,
            REMOVAL_PATIENCE,
        )?;
        self.live.remove(&sandbox);
        Ok(())
    }

    /// Removes all boxes. Every one is tried.
    ///
    /// # Errors
    /// The first failure.
    pub(super) fn remove_all(&mut self) -> Result<(), Fault> {
        let all: Vec<_> = self.live.keys().copied().collect();
        let results: Vec<_> = all.into_iter().map(|id| self.remove(id)).collect();
        results.into_iter().collect()
    }

    /// What there is.
    pub(super) fn list(&self) -> Vec<BoxFacts> {
        self.live.values().map(|live| live.facts.clone()).collect()
    }

    /// The living boxes, for waiting on them.
    pub(super) fn live(&self) -> impl Iterator<Item = (SandboxId, &LiveBox)> {
        let boxes = self.live.iter().map(|(id, live)| (*id, live));
        boxes.filter(|(_, live)| !live.ended)
    }

    /// Looks whether the first process of a box has ended; then says how, and clears up.
    pub(super) fn reap(&mut self, sandbox: SandboxId) -> Option<BoxEnd> {
        let live = self.live.get(&sandbox).filter(|live| !live.ended)?;
        let status = waitid(
            WaitId::PidFd(live.process().as_fd()),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
        );
        let how = match status {
            Ok(None) | Err(Errno::INTR) => return None,
            Ok(Some(status)) => match status.exit_status() {
                Some(code) => BoxEnd::AgentExited { code },
                None => BoxEnd::AgentKilled {
                    signal: status.terminating_signal().unwrap_or(0),
                    out_of_memory: live.made.remains.agent_ran_out_of_memory(),
                },
            },
            Err(_) => BoxEnd::AgentKilled {
                signal: 0,
                out_of_memory: false,
            },
        };
        self.pass_on_words(sandbox);
        self.clear(sandbox);
        Some(how)
    }

    /// Ends the boxes whose time has come.
    pub(super) fn end_overdue(&mut self) -> Vec<SandboxId> {
        let now = now_ms();
        let overdue: Vec<_> = self
            .live()
            .filter(|(_, live)| live.hard_deadline_ms.is_some_and(|at| at <= now))
            .map(|(id, _)| id)
            .collect();
        for sandbox in &overdue {
            self.clear(*sandbox);
        }
        overdue
    }

    /// How long until the next box has to end.
    pub(super) fn until_deadline(&self) -> Option<Duration> {
        let deadlines = self.live().filter_map(|(_, live)| live.hard_deadline_ms);
        let next = deadlines.min()?;
        let left = next.saturating_sub(now_ms()).max(0);
        Some(Duration::from_millis(left.unsigned_abs()))
    }

    /// Passes on what the agent said on its standard error, up to its budget. What comes after
    /// that is read and dropped.
    pub(super) fn pass_on_words(&mut self, sandbox: SandboxId) {
        let Some(live) = self.live.get_mut(&sandbox) else {
            return;
        };
        let mut chunk = [0; 4096];
        loop {
            match rustix::io::read(&live.made.words, &mut chunk) {
                Ok(0) => live.words_closed = true,
                Ok(count) => {
                    let kept = count.min(live.words_left);
                    live.words_left -= kept;
                    if kept > 0 {
                        say(format_args!(
                            "agent of {sandbox}: {}",
                            printable(&chunk[..kept])
                        ));
                    }
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {}
                Err(_) => live.words_closed = true,
            }
            return;
        }
    }

    /// Removes a box that nobody has asked to be removed. What cannot be taken away now stays in
    /// the list and is tried again when it is asked for, or at the end.
    fn clear(&mut self, sandbox: SandboxId) {
        let removed = self.remove(sandbox);
        if let Some(live) = self.live.get_mut(&sandbox) {
            // Whatever is left of it: its end is told once.
            live.ended = true;
        }
        if let Err(fault) = removed {
            say(format_args!("{sandbox} has ended, but: {fault}"));
        }
    }
}

fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .ok()
        .and_then(|since| i64::try_from(since.as_millis()).ok())
        .unwrap_or(i64::MAX)
}

fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .trim_end()
        .escape_debug()
        .collect()
}
