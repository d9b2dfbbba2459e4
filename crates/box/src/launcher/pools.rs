//! Boxes that are kept ready: which kinds, how many, and which there are.
//!
//! What is done about them is in `keeping`.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::boxes::BoxKey;
use crate::control::{BoxKind, PoolFacts};
use crate::create::stages::micros;

/// How many times as long as a refill has kept the machine busy nothing is done after it: what
/// is made in advance takes a fifth of one processor at most.
const REST: u32 = 4;

/// How long nothing is made in advance after a box was given away: whoever got it uses it now.
const GIVEN_REST: Duration = Duration::from_millis(25);

/// How long nothing is made in advance after a failure; twice as long after each further one.
const FAILED_REST: Duration = Duration::from_secs(1);
const LONGEST_FAILED_REST: Duration = Duration::from_secs(60);

/// A box that is ready.
#[derive(Debug, Clone, Copy)]
struct Ready {
    key: BoxKey,
    since: Instant,
}

/// The boxes of one kind.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) kind: Rc<BoxKind>,
    wanted: u32,
    /// The oldest first.
    ready: VecDeque<Ready>,
    hits: u64,
    misses: u64,
    aged_out: u64,
    last_refill_us: u64,
}

/// The one box that is being made in advance.
#[derive(Debug)]
pub(super) struct Refill {
    pub(super) key: BoxKey,
    kind: Rc<BoxKind>,
    pub(super) began: Instant,
}

/// All boxes that are kept ready, and the one that is about to be.
#[derive(Debug, Default)]
pub(super) struct Pools {
    all: Vec<Pool>,
    refill: Option<Refill>,
    /// Nothing is made before that moment.
    rests: Option<Instant>,
    failures: u32,
}

impl Pools {
    fn of(&mut self, kind: &BoxKind) -> Option<&mut Pool> {
        self.all.iter_mut().find(|pool| *pool.kind == *kind)
    }

    /// Sets how many boxes of a kind are to be ready. Gives those that are too many.
    pub(super) fn keep(&mut self, kind: BoxKind, wanted: u32) -> Vec<BoxKey> {
        let mut surplus = Vec::new();
        if wanted == 0 {
            if let Some(refill) = self.refill.take_if(|refill| *refill.kind == kind) {
                surplus.push(refill.key);
            }
            self.all.retain(|pool| {
                let stays = *pool.kind != kind;
                if !stays {
                    surplus.extend(pool.ready.iter().map(|ready| ready.key));
                }
                stays
            });
        } else if let Some(pool) = self.of(&kind) {
            pool.wanted = wanted;
            let count = pool.ready.len().saturating_sub(wanted as usize);
            surplus.extend(pool.ready.drain(..count).map(|ready| ready.key));
        } else {
            self.all.push(Pool {
                kind: Rc::new(kind),
                wanted,
                ready: VecDeque::new(),
                hits: 0,
                misses: 0,
                aged_out: 0,
                last_refill_us: 0,
            });
        }
        surplus
    }

    /// Takes the oldest box of a kind that is ready. It is in no pool any more.
    pub(super) fn take(&mut self, kind: &BoxKind) -> Option<BoxKey> {
        self.of(kind)?.ready.pop_front().map(|ready| ready.key)
    }

    /// Takes down that a box of a kind was asked for, and whether one was ready.
    pub(super) fn count(&mut self, kind: &BoxKind, was_ready: bool, now: Instant) {
        let Some(pool) = self.of(kind) else {
            return;
        };
        if was_ready {
            pool.hits += 1;
            self.rest(now + GIVEN_REST);
        } else {
            pool.misses += 1;
        }
    }

    /// Forgets a box that has ended, or is about to. Says whether it was one of these.
    pub(super) fn forget(&mut self, key: BoxKey, now: Instant) -> bool {
        if self.refill.take_if(|refill| refill.key == key).is_some() {
            self.failed(now);
            return true;
        }
        self.all.iter_mut().any(|pool| {
            let before = pool.ready.len();
            pool.ready.retain(|ready| ready.key != key);
            pool.ready.len() < before
        })
    }

    /// Takes those out that became ready before that moment.
    pub(super) fn take_older_than(&mut self, moment: Instant) -> Vec<BoxKey> {
        self.age_out(|ready| ready.since <= moment)
    }

    /// Takes these out, also the one that is being made. That one has not failed: another one may
    /// be made at once.
    pub(super) fn age_out_these(&mut self, keys: &[BoxKey]) -> Vec<BoxKey> {
        let mut old = self.age_out(|ready| keys.contains(&ready.key));
        let refill = self.refill.take_if(|refill| keys.contains(&refill.key));
        old.extend(refill.map(|refill| refill.key));
        old
    }

    fn age_out(&mut self, is_old: impl Fn(&Ready) -> bool) -> Vec<BoxKey> {
        let mut old = Vec::new();
        for pool in &mut self.all {
            let before = old.len();
            old.extend(
                pool.ready
                    .iter()
                    .filter(|ready| is_old(ready))
                    .map(|ready| ready.key),
            );
            pool.ready.retain(|ready| !is_old(ready));
            pool.aged_out += (old.len() - before) as u64;
        }
        old
    }

    /// All that are ready, and the one that is being made.
    pub(super) fn boxes(&self) -> impl Iterator<Item = BoxKey> {
        let pools = self.all.iter().flat_map(|pool| &pool.ready);
        let refill = self.refill.as_ref().map(|refill| refill.key);
        pools.map(|ready| ready.key).chain(refill)
    }

    /// The kind of which a box is to be made now, where one is: the one that lacks most. Where
    /// that is not now but later, the moment.
    pub(super) fn lacks(&self, now: Instant) -> Result<Rc<BoxKind>, Option<Instant>> {
        if self.refill.is_some() {
            return Err(None);
        }
        let lacking = self.all.iter().filter(|pool| pool.lack() > 0);
        let Some(pool) = lacking.max_by(|one, other| {
            let share = |pool: &Pool, of: &Pool| u64::from(pool.lack()) * u64::from(of.wanted);
            share(one, other).cmp(&share(other, one))
        }) else {
            return Err(None);
        };
        match self.rests {
            Some(until) if until > now => Err(Some(until)),
            _ => Ok(Rc::clone(&pool.kind)),
        }
    }

    /// A box is being made for a pool.
    pub(super) fn begin(&mut self, kind: Rc<BoxKind>, key: BoxKey, now: Instant) {
        self.refill = Some(Refill {
            key,
            kind,
            began: now,
        });
    }

    /// The box that is being made.
    pub(super) const fn refill(&self) -> Option<&Refill> {
        self.refill.as_ref()
    }

    /// The box that was being made is ready; it has waited so long for somebody else. Gives it
    /// back when it is not wanted any more.
    pub(super) fn became_ready(&mut self, now: Instant, waited: Duration) -> Option<BoxKey> {
        let refill = self.refill.take()?;
        let took = now - refill.began;
        self.failures = 0;
        self.rest(now + took.saturating_sub(waited) * REST);
        let pool = self.of(&refill.kind);
        match pool.filter(|pool| pool.lack() > 0) {
            None => Some(refill.key),
            Some(pool) => {
                pool.last_refill_us = micros(took);
                pool.ready.push_back(Ready {
                    key: refill.key,
                    since: now,
                });
                None
            }
        }
    }

    /// The box that was being made has come to nothing.
    pub(super) fn failed(&mut self, now: Instant) {
        self.refill = None;
        let pause = FAILED_REST * 2_u32.saturating_pow(self.failures.min(10));
        self.failures += 1;
        self.rest(now + pause.min(LONGEST_FAILED_REST));
    }

    fn rest(&mut self, until: Instant) {
        self.rests = self.rests.max(Some(until));
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.refill = None;
    }

    /// What is told of them.
    pub(super) fn facts(&self, now: Instant) -> Vec<PoolFacts> {
        let all = self.all.iter().map(|pool| PoolFacts {
            kind: (*pool.kind).clone(),
            wanted: pool.wanted,
            ready: pool.count(),
            hits: pool.hits,
            misses: pool.misses,
            aged_out: pool.aged_out,
            last_refill_us: pool.last_refill_us,
            oldest_ms: pool.ready.front().map_or(0, |oldest| {
                u64::try_from((now - oldest.since).as_millis()).unwrap_or(u64::MAX)
            }),
        });
        all.collect()
    }
}

impl Pool {
    fn count(&self) -> u32 {
        u32::try_from(self.ready.len()).unwrap_or(u32::MAX)
    }

    fn lack(&self) -> u32 {
        self.wanted.saturating_sub(self.count())
    }
}

#[cfg(test)]
mod tests;
