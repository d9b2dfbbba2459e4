//! Ids that were deleted while there was nothing of them. A delete may overtake the create that it
//! is about, and whoever sent both has to be able to rely on it that nothing is left.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use glovebox_protocol::ids::SandboxId;
use glovebox_protocol::sign::WINDOW_MS;

/// How long one is remembered. A create that was signed before the delete comes sooner: its
/// signature is valid for two windows, and its body follows within one.
const MEMORY: Duration = Duration::from_millis(3 * WINDOW_MS.unsigned_abs());

/// How many are remembered at most.
const MAX: usize = 10_000;

/// Such ids, and since when.
#[derive(Debug, Default)]
pub(crate) struct Unborn(HashMap<SandboxId, Instant>);

impl Unborn {
    /// One was deleted. Where there are too many, the oldest is forgotten.
    pub(crate) fn add(&mut self, id: SandboxId, now: Instant) {
        if self.0.len() >= MAX {
            self.0.retain(|_, since| is_remembered(*since, now));
        }
        if self.0.len() >= MAX {
            let oldest = self.0.iter().min_by_key(|(_, since)| **since);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.0.remove(&oldest);
            }
        }
        self.0.insert(id, now);
    }

    /// Whether it is one of them.
    pub(crate) fn holds(&self, id: SandboxId, now: Instant) -> bool {
        let since = self.0.get(&id);
        since.is_some_and(|since| is_remembered(*since, now))
    }
}

fn is_remembered(since: Instant, now: Instant) -> bool {
    now.saturating_duration_since(since) < MEMORY
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_remembered_for_a_while_and_the_newest_of_very_many() {
        let (mut unborn, began) = (Unborn::default(), Instant::now());
        let ids: Vec<_> = (0..=MAX).map(|_| SandboxId::new()).collect();
        for (number, id) in (0..).zip(&ids) {
            unborn.add(*id, began + Duration::from_millis(number));
        }
        assert!(!unborn.holds(ids[0], began) && unborn.holds(ids[1], began));
        assert!(unborn.holds(ids[MAX], began + MEMORY));
        assert!(!unborn.holds(ids[1], began + 2 * MEMORY));
        unborn.add(ids[0], began + 2 * MEMORY);
        assert_eq!(unborn.0.len(), 1);
    }
}
