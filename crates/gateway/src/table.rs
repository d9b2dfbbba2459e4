//! Which sandboxes there are: those that are being made, those that run, and for a while those
//! that have ended.
//!
//! It decides nothing and asks nobody. What it says can be made up again from the runtime, except
//! for why something ended.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use glovebox_protocol::gateway::{CreateSandbox, SandboxState, SandboxView};
use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::Epoch;
use tokio::sync::{Notify, watch};

use crate::error::ApiError;
use crate::relay::Pool;
use crate::state::lock;
use crate::unborn::Unborn;

/// How long an ended sandbox is remembered, in milliseconds.
const MEMORY_MS: i64 = 2 * 60 * 60 * 1000;

/// How many ended sandboxes are remembered at most.
const MAX_ENDED: usize = 10_000;

/// Every sandbox by its id.
#[derive(Default)]
pub(crate) struct Table(Mutex<Content>);

#[derive(Default)]
struct Content {
    entries: BTreeMap<SandboxId, Entry>,
    unborn: Unborn,
}

/// What stands where an entry was to be put.
pub(crate) enum There<'a> {
    /// Another one, or the same.
    Entry(&'a Entry),
    /// The id was deleted while there was nothing of it.
    Unborn,
}

/// One sandbox.
pub(crate) struct Entry {
    /// What was asked for; nothing where another life of the gateway was asked, and of one that has
    /// ended: many of those are remembered.
    pub(crate) asked: Option<Box<CreateSandbox>>,
    pub(crate) phase: Phase,
    pub(crate) hard_deadline_ms: Option<i64>,
    pub(crate) agent_epoch: Option<Epoch>,
    /// Memory that is set aside for it, in bytes.
    pub(crate) reserve_bytes: u64,
    /// Connections to its agent.
    pub(crate) pool: Arc<Pool>,
}

/// How far a sandbox is.
#[derive(Clone)]
pub(crate) enum Phase {
    Starting(Making),
    Running,
    Ended { reason: String, at_ms: i64 },
}

/// A sandbox that is being made.
#[derive(Clone)]
pub(crate) struct Making {
    /// Stops it.
    pub(crate) cancel: Arc<Notify>,
    /// What came of it, once something has.
    pub(crate) outcome: watch::Receiver<Option<Result<(), ApiError>>>,
}

/// How much sandboxes take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) sandboxes: u32,
    pub(crate) reserve_bytes: u64,
}

impl Entry {
    pub(crate) const fn is_alive(&self) -> bool {
        !matches!(self.phase, Phase::Ended { .. })
    }

    pub(crate) fn view(&self, id: SandboxId, now_ms: i64, window_ms: u64) -> SandboxView {
        let left = self.hard_deadline_ms.map(|deadline| deadline - now_ms);
        let left = left.map(|left| u64::try_from(left).unwrap_or(0));
        SandboxView {
            id,
            state: match (&self.phase, left) {
                (Phase::Starting(_), _) => SandboxState::Starting,
                (Phase::Running, Some(left_ms)) if left_ms <= window_ms => {
                    SandboxState::Ending { left_ms }
                }
                (Phase::Running, _) => SandboxState::Running,
                (Phase::Ended { reason, at_ms }, _) => SandboxState::Ended {
                    reason: reason.clone(),
                    at_ms: *at_ms,
                },
            },
            hard_deadline_ms: self.hard_deadline_ms,
            agent_epoch: self.agent_epoch,
        }
    }
}

impl Table {
    /// Does something with one entry, if there is one.
    pub(crate) fn with<T>(&self, id: SandboxId, work: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        lock(&self.0).entries.get_mut(&id).map(work)
    }

    /// How far one is. Of an id of which there is nothing it is remembered that it was deleted.
    pub(crate) fn phase_to_end(&self, id: SandboxId) -> Option<Phase> {
        let mut content = lock(&self.0);
        let phase = content.entries.get(&id).map(|entry| entry.phase.clone());
        if phase.is_none() {
            content.unborn.add(id, Instant::now());
        }
        phase
    }

    /// Puts an entry in the place of none, unless `room` has something against it. An entry that
    /// is there stays as it is and is looked at with `there`.
    pub(crate) fn insert<T>(
        &self,
        id: SandboxId,
        entry: Entry,
        there: impl FnOnce(There<'_>) -> T,
        room: impl FnOnce(Taken) -> Result<(), T>,
    ) -> Result<(), T> {
        let Content { entries, unborn } = &mut *lock(&self.0);
        if let Some(other) = entries.get(&id) {
            return Err(there(There::Entry(other)));
        }
        if unborn.holds(id, Instant::now()) {
            return Err(there(There::Unborn));
        }
        room(taken(entries))?;
        entries.insert(id, entry);
        Ok(())
    }

    /// Writes down that a sandbox runs, if it was being made or was not known.
    pub(crate) fn runs(&self, id: SandboxId, epoch: Option<Epoch>) {
        self.with(id, |entry| {
            if matches!(entry.phase, Phase::Starting(_)) {
                entry.phase = Phase::Running;
                entry.agent_epoch = epoch;
            }
        });
    }

    /// Writes down that a sandbox has ended. The first reason stays. Says whether this is new.
    pub(crate) fn ended(&self, id: SandboxId, reason: &str, at_ms: i64) -> bool {
        let new = self.with(id, |entry| {
            let was_alive = entry.is_alive();
            if was_alive {
                let reason = reason.into();
                entry.phase = Phase::Ended { reason, at_ms };
                entry.asked = None;
                entry.pool.close();
            }
            was_alive
        });
        new.unwrap_or(false)
    }

    pub(crate) fn forget(&self, id: SandboxId) {
        lock(&self.0).entries.remove(&id);
    }

    /// Forgets sandboxes that ended long ago, and the oldest where there are too many.
    pub(crate) fn forget_old(&self, now_ms: i64) {
        let entries = &mut lock(&self.0).entries;
        let mut ended: Vec<_> = entries
            .iter()
            .filter_map(|(id, entry)| match entry.phase {
                Phase::Ended { at_ms, .. } => Some((at_ms, *id)),
                _ => None,
            })
            .collect();
        ended.sort_unstable();
        let surplus = ended.len().saturating_sub(MAX_ENDED);
        for (place, (at_ms, id)) in ended.into_iter().enumerate() {
            if place < surplus || now_ms.saturating_sub(at_ms) > MEMORY_MS {
                entries.remove(&id);
            }
        }
    }

    pub(crate) fn taken(&self) -> Taken {
        taken(&lock(&self.0).entries)
    }

    /// Looks at those after `after`, in order, at most `limit`.
    pub(crate) fn page<T>(
        &self,
        after: Option<SandboxId>,
        limit: usize,
        look: impl Fn(SandboxId, &Entry) -> T,
    ) -> Vec<T> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let entries = &lock(&self.0).entries;
        let range = entries.range((from, Bound::Unbounded));
        range
            .take(limit)
            .map(|(id, entry)| look(*id, entry))
            .collect()
    }
}

fn taken(entries: &BTreeMap<SandboxId, Entry>) -> Taken {
    let alive = || entries.values().filter(|entry| entry.is_alive());
    Taken {
        sandboxes: u32::try_from(alive().count()).unwrap_or(u32::MAX),
        reserve_bytes: alive().map(|entry| entry.reserve_bytes).sum(),
    }
}
